//! Package `regexp`.

use std::sync::Arc;

use bellwether_go::regexp::Regex;

use super::argument::{Outcome, int, string, string_list, text_result};
use super::{INT, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "regexp",
    functions: &[
        function("Find", &[STRING, STRING], Kind::STRING, find),
        function("FindAll", &[STRING, STRING, INT], Kind::LIST, find_all),
        function(
            "FindAllNamedSubmatch",
            &[STRING, STRING, INT],
            Kind::LIST,
            find_all_named_submatch,
        ),
        function(
            "FindAllSubmatch",
            &[STRING, STRING, INT],
            Kind::LIST,
            find_all_submatch,
        ),
        function(
            "FindNamedSubmatch",
            &[STRING, STRING],
            Kind::STRUCT,
            find_named_submatch,
        ),
        function("FindSubmatch", &[STRING, STRING], Kind::LIST, find_submatch),
        function(
            "ReplaceAll",
            &[STRING, STRING, STRING],
            Kind::STRING,
            replace_all,
        ),
        function(
            "ReplaceAllLiteral",
            &[STRING, STRING, STRING],
            Kind::STRING,
            replace_all_literal,
        ),
        function("Valid", &[STRING], Kind::BOOL, valid),
        function("Match", &[STRING, STRING], Kind::BOOL, matches),
        function("QuoteMeta", &[STRING], Kind::STRING, quote_meta),
    ],
    source: "",
};

fn compile(arguments: &[Value]) -> Result<Regex, Failure> {
    Regex::new(string(arguments, 0)?)
        .map_err(|message| Failure::error(format!("error parsing regexp: {message}")))
}

fn no_match() -> Failure {
    Failure::error("no match")
}

/// A count argument; negative means all.
fn limit(arguments: &[Value]) -> Result<usize, Failure> {
    Ok(usize::try_from(int(arguments, 2)?).unwrap_or(usize::MAX))
}

/// The groups of at least one match.
fn groups(regex: &Regex, text: &str, limit: usize) -> Result<Vec<Vec<String>>, Failure> {
    let found = regex.find_all_groups(text, limit);
    if found.is_empty() {
        Err(no_match())
    } else {
        Ok(found)
    }
}

fn named(regex: &Regex, groups: Vec<String>) -> Value {
    let names = regex.group_names();
    let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
    for (name, group) in names.into_iter().zip(groups) {
        if let Some(name) = name {
            fields.push((name.into(), Value::string(group)));
        }
    }
    // The reference goes through a map, whose labels come out sorted.
    fields.sort_by(|left, right| left.0.cmp(&right.0));
    Value::structure(fields)
}

fn find(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = regex.find_all(string(arguments, 1)?, 1).pop();
    text_result(found.ok_or_else(no_match)?)
}

fn find_all(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = regex.find_all(string(arguments, 1)?, limit(arguments)?);
    if found.is_empty() {
        Err(no_match())
    } else {
        Ok(string_list(found))
    }
}

fn find_all_named_submatch(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = groups(&regex, string(arguments, 1)?, limit(arguments)?)?;
    Ok(Value::list(
        found.into_iter().map(|groups| named(&regex, groups)),
    ))
}

fn find_all_submatch(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = groups(&regex, string(arguments, 1)?, limit(arguments)?)?;
    Ok(Value::list(found.into_iter().map(string_list)))
}

fn find_named_submatch(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = groups(&regex, string(arguments, 1)?, 1)?;
    Ok(named(&regex, found.into_iter().next().unwrap_or_default()))
}

fn find_submatch(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    let found = groups(&regex, string(arguments, 1)?, 1)?;
    Ok(string_list(found.into_iter().next().unwrap_or_default()))
}

fn replace_all(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    text_result(regex.replace_all(string(arguments, 1)?, string(arguments, 2)?))
}

fn replace_all_literal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    text_result(regex.replace_all_literal(string(arguments, 1)?, string(arguments, 2)?))
}

fn valid(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    compile(arguments).map(|_| Value::Bool(true))
}

fn matches(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let regex = compile(arguments)?;
    Ok(Value::Bool(regex.is_match(string(arguments, 1)?)))
}

fn quote_meta(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut quoted = String::new();
    for character in string(arguments, 0)?.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    text_result(quoted)
}
