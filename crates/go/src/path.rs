//! Paths with slashes, as package `path` treats them.

/// The shortest path that means the same: `path.Clean`.
pub fn clean(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") | None if !is_rooted => parts.push(".."),
                _ => {
                    parts.pop();
                }
            },
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    match (is_rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// The last part of a path: `path.Base`.
pub fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return "/";
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// All but the last part of a path: `path.Dir`.
pub fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(&path[..end])
}

/// What follows the last dot of the last part, with the dot: `path.Ext`.
pub fn ext(path: &str) -> &str {
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[last..].rfind('.') {
        Some(dot) => &path[last + dot..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_as_in_go() {
        // path, Clean, Base, Dir, Ext of Go 1.26.
        let cases = [
            ("", ".", ".", ".", ""),
            ("/", "/", "/", "/", ""),
            ("a//b/", "a/b", "b", "a/b", ""),
            ("/../a/./b.c", "/a/b.c", "b.c", "/a", ".c"),
            ("../../x", "../../x", "x", "../..", ""),
            ("a/../..", "..", "..", ".", "."),
            ("a/b/../c.tar.gz", "a/c.tar.gz", "c.tar.gz", "a", ".gz"),
            ("a.b/c", "a.b/c", "c", "a.b", ""),
        ];
        for (path, cleaned, last, before, extension) in cases {
            assert_eq!(clean(path), cleaned, "{path}");
            assert_eq!(base(path), last, "{path}");
            assert_eq!(dir(path), before, "{path}");
            assert_eq!(ext(path), extension, "{path}");
        }
    }
}
