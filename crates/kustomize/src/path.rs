//! Paths of files, and paths of fields.

/// Joins a path to a directory and removes `.` and `..` where that is possible.
pub(crate) fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return clean(path);
    }
    clean(&format!("{directory}/{path}"))
}

/// A path without `.`, `..` in the middle, and empty parts; `.` if nothing is left.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// The directory that a clean path is in.
pub(crate) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None => ".",
    }
}

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True if a clean path is a directory, or inside of it.
pub(crate) fn is_inside(path: &str, directory: &str) -> bool {
    match directory {
        "." => !path.starts_with("..") && !path.starts_with('/'),
        "/" => path.starts_with('/'),
        _ => {
            let rest = path.strip_prefix(directory);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    }
}

/// Splits a path of fields at a separator; `\` before the separator keeps it in the name.
pub(crate) fn split(path: &str, separator: char) -> Vec<String> {
    let mut parts = path.split(separator).peekable();
    // A separator at the beginning is allowed and means nothing.
    if path.len() > 1 && path.starts_with(separator) {
        parts.next();
    }
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        match names.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(separator);
                last.push_str(part);
            }
            _ => names.push(part.to_owned()),
        }
    }
    names
}

/// [`split`] at dots, except inside of brackets: `a.[b.c/d].[name=x]`. Brackets without `=` only
/// quote a name.
pub(crate) fn split_with_brackets(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut parts = split(path, '.').into_iter();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            names.push(part);
            continue;
        }
        let mut bracketed = part;
        for next in parts.by_ref() {
            bracketed.push('.');
            bracketed.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        if bracketed.contains('=') {
            names.push(bracketed);
        } else {
            names.push(bracketed.trim_matches(['[', ']']).to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned() {
        for (path, expected) in [
            ("a/./b//c", "a/b/c"),
            ("a/../b", "b"),
            ("../a", "../a"),
            ("/../a", "/a"),
            ("a/..", "."),
            ("/", "/"),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
        assert_eq!(join("prod", "../base"), "base");
        assert!(is_inside("a/b", "a") && is_inside("a", "a") && !is_inside("ab", "a"));
        assert!(is_inside("x", ".") && !is_inside("../x", "."));
    }

    #[test]
    fn fields_are_split() {
        assert_eq!(split("/a/b\\/c/d", '/'), ["a", "b/c", "d"]);
        assert_eq!(
            split_with_brackets("a.[x.io/y].[name=v.1].dotted\\.key"),
            ["a", "x.io/y", "[name=v.1]", "dotted.key"]
        );
    }
}
