//! Package `path`: paths of Unix, Windows and Plan 9, chosen by an argument.

mod glob;
mod os;

use super::argument::{Outcome, string, string_list, strings, text_result};
use super::{LIST, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Param, Value};

use self::os::Os;

pub(super) static PACKAGE: Package = Package {
    path: "path",
    functions: &[
        function("Split", &[STRING, UNIX], Kind::LIST, split),
        function("SplitList", &[STRING, STRING], Kind::LIST, split_list),
        function("Join", &[LIST, UNIX], Kind::STRING, join),
        function("Match", &[STRING, STRING, UNIX], Kind::BOOL, matches),
        function("Clean", &[STRING, UNIX], Kind::STRING, clean),
        function("ToSlash", &[STRING, STRING], Kind::STRING, to_slash),
        function("FromSlash", &[STRING, STRING], Kind::STRING, from_slash),
        function("Ext", &[STRING, UNIX], Kind::STRING, extension),
        function("Resolve", &[STRING, STRING, UNIX], Kind::STRING, resolve),
        function("Rel", &[STRING, STRING, UNIX], Kind::STRING, relative),
        function("Base", &[STRING, UNIX], Kind::STRING, base),
        function("Dir", &[STRING, UNIX], Kind::STRING, directory),
        function("IsAbs", &[STRING, UNIX], Kind::BOOL, is_absolute),
        function("VolumeName", &[STRING, STRING], Kind::STRING, volume_name),
    ],
    source: "Unix: \"unix\"\nWindows: \"windows\"\nPlan9: \"plan9\"\n",
};

/// The system argument, Unix unless given.
const UNIX: Param = Param::optional("unix");

fn system(arguments: &[Value], position: usize) -> Result<Os, Failure> {
    let name = string(arguments, position)?;
    Os::from_name(name).ok_or_else(|| {
        Failure::error(format!(
            "invalid operating system {name:?}: must be \"unix\", \"windows\" or \"plan9\""
        ))
    })
}

fn split(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (path, os) = (string(arguments, 0)?, system(arguments, 1)?);
    let end = os.last_element_start(path);
    Ok(string_list([&path[..end], &path[end..]]))
}

fn split_list(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(string_list(
        system(arguments, 1)?.split_list(string(arguments, 0)?),
    ))
}

fn join(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let parts = strings(host, arguments, 0)?;
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    text_result(system(arguments, 1)?.join(&parts))
}

fn matches(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let os = system(arguments, 2)?;
    match glob::matches(string(arguments, 0)?, string(arguments, 1)?, os) {
        Ok(matched) => Ok(Value::Bool(matched)),
        Err(message) => Err(Failure::error(message)),
    }
}

fn clean(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(system(arguments, 1)?.clean(string(arguments, 0)?))
}

fn to_slash(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let separator = system(arguments, 1)?.separator();
    text_result(string(arguments, 0)?.replace(separator, "/"))
}

fn from_slash(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(system(arguments, 1)?.slashes_replaced(string(arguments, 0)?))
}

fn extension(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (path, os) = (string(arguments, 0)?, system(arguments, 1)?);
    let name_start = path
        .rfind(|c| os.is_separator(c))
        .map_or(0, |position| position + 1);
    let name = &path[name_start..];
    text_result(name.rfind('.').map_or("", |dot| &name[dot..]))
}

fn resolve(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (directory, path) = (string(arguments, 0)?, string(arguments, 1)?);
    let os = system(arguments, 2)?;
    text_result(if os.is_absolute(path) {
        os.clean(path)
    } else {
        os.join(&[&os.clean(directory), path])
    })
}

fn relative(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (base, target) = (string(arguments, 0)?, string(arguments, 1)?);
    match system(arguments, 2)?.relative(base, target) {
        Some(path) => text_result(path),
        None => Err(Failure::error(format!(
            "Rel: can't make {target} relative to {base}"
        ))),
    }
}

fn base(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (path, os) = (string(arguments, 0)?, system(arguments, 1)?);
    if path.is_empty() {
        return text_result(".");
    }
    let trimmed = path.trim_end_matches(|c| os.is_separator(c));
    let trimmed = &trimmed[os.volume_length(trimmed)..];
    let name_start = trimmed
        .rfind(|c| os.is_separator(c))
        .map_or(0, |position| position + 1);
    match &trimmed[name_start..] {
        "" => text_result(os.separator().to_string()),
        name => text_result(name),
    }
}

fn directory(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (path, os) = (string(arguments, 0)?, system(arguments, 1)?);
    let volume = &path[..os.volume_length(path)];
    let end = os.last_element_start(path);
    let directory = os.clean(&path[volume.len()..end]);
    if directory == "." && volume.len() > 2 {
        return text_result(volume);
    }
    text_result(format!("{volume}{directory}"))
}

fn is_absolute(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(
        system(arguments, 1)?.is_absolute(string(arguments, 0)?),
    ))
}

fn volume_name(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let path = string(arguments, 0)?;
    text_result(&path[..system(arguments, 1)?.volume_length(path)])
}
