//! Paths that are not templates: the relaxed form of kubectl's columns, and the simple paths of
//! CustomResourceDefinitions.

use crate::error::Error;

/// Turns `name.first`, `.name.first`, `{name.first}` or `{.name.first}` into the last form.
pub fn relaxed(path: &str) -> Result<String, Error> {
    if path.is_empty() {
        return Ok(String::new());
    }
    let inner = match path.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or(Error::NotAPath)?,
        None => path,
    };
    let fields = match inner.strip_prefix('.') {
        // A lone dot is a path of its own.
        Some("") | None => inner,
        Some(fields) => fields,
    };
    if fields.is_empty() || fields.contains(['{', '}']) {
        return Err(Error::NotAPath);
    }
    Ok(format!("{{.{fields}}}"))
}

/// Checks a path of a printer column or of the scale subresource as an API server does: only that
/// it starts with a dot.
pub fn validate_simple_path(path: &str) -> Result<(), Error> {
    let problem = match path.chars().next() {
        None => "must not be empty",
        Some('.') => return Ok(()),
        Some(_) => "must be a simple json path starting with .",
    };
    Err(Error::NotSimple(problem.to_owned()))
}

/// The field names of a path such as `.spec.color`, as selectable fields and the `fieldPath` of
/// validation rules have it; `['a.b']` is allowed only with `brackets`.
pub fn field_path(path: &str, brackets: bool) -> Result<Vec<String>, Error> {
    let fail = |problem: String| Err(Error::NotSimple(problem));
    let unexpected_end = || Error::NotSimple("unexpected end of JSON path".to_owned());
    let mut fields = Vec::new();
    let mut rest = path;
    while let Some((token, after)) = next_token(rest) {
        rest = after;
        match token {
            "." => {
                let (name, after) = next_token(rest).ok_or_else(unexpected_end)?;
                fields.push(name.to_owned());
                rest = after;
            }
            "[" if !brackets => return fail("array notation is not allowed".to_owned()),
            "[" => {
                let (quoted, after) = next_token(rest).ok_or_else(unexpected_end)?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|inner| inner.strip_suffix('\''));
                let Some(inner) = inner else {
                    return fail(format!("expected single quoted string but got {quoted}"));
                };
                fields.push(unescape(inner)?);
                let (close, after) = next_token(after).ok_or_else(unexpected_end)?;
                if close != "]" {
                    return fail(format!("expected ] but got {close}"));
                }
                rest = after;
            }
            other => return fail(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(fields)
}

/// The next dot, bracket, quoted text, or whatever stands before one.
fn next_token(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    let length = match first {
        '\'' => {
            let bytes = text.as_bytes();
            let end = (1..bytes.len()).find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\');
            end.map_or(text.len(), |end| end + 1)
        }
        '.' | '[' | ']' => 1,
        _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
    };
    Some(text.split_at(length))
}

fn unescape(text: &str) -> Result<String, Error> {
    let quoted = format!("'{text}'");
    crate::quote::unquote(&quoted)
        .ok_or_else(|| Error::NotSimple("invalid string literal: invalid syntax".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_forms_mean_the_same() {
        for path in [
            "metadata.name",
            ".metadata.name",
            "{metadata.name}",
            "{.metadata.name}",
        ] {
            assert_eq!(relaxed(path).as_deref(), Ok("{.metadata.name}"), "{path}");
        }
        assert_eq!(relaxed("").as_deref(), Ok(""));
        assert_eq!(relaxed(".").as_deref(), Ok("{..}"));
        for path in ["{.a", "a}", "{.a}{.b}", "x{.a}", "{}"] {
            assert_eq!(relaxed(path), Err(Error::NotAPath), "{path}");
        }
    }

    #[track_caller]
    fn check(path: &str, brackets: bool, expected: Result<&[&str], &str>) {
        let actual = field_path(path, brackets);
        let actual: Result<Vec<&str>, String> = match &actual {
            Ok(fields) => Ok(fields.iter().map(String::as_str).collect()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(
            actual,
            expected.map(<[&str]>::to_vec).map_err(str::to_owned),
            "{path}"
        );
    }

    #[test]
    fn field_paths_are_names_after_dots() {
        check(".spec.color", false, Ok(&["spec", "color"]));
        check("", false, Ok(&[]));
        check("spec", false, Err("expected [ or . but got: spec"));
        check(".spec.", false, Err("unexpected end of JSON path"));
        check(".spec['a.b']", false, Err("array notation is not allowed"));
        check(".spec['a.b'].c", true, Ok(&["spec", "a.b", "c"]));
        check(
            ".spec[0]",
            true,
            Err("expected single quoted string but got 0"),
        );
        check(".spec['a'", true, Err("unexpected end of JSON path"));
        check(".spec['it\\'s']", true, Ok(&["spec", "it's"]));
    }

    #[test]
    fn simple_paths_start_with_a_dot() {
        assert_eq!(validate_simple_path(".spec.x"), Ok(()));
        assert_eq!(
            validate_simple_path("").unwrap_err().to_string(),
            "must not be empty"
        );
        let error = validate_simple_path("spec").unwrap_err();
        assert_eq!(
            error.to_string(),
            "must be a simple json path starting with ."
        );
    }
}
