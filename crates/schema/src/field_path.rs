//! Paths to fields as definitions write them: `.spec.size`, `.labels['app']`.

use crate::model::Schema;

/// Whether a path may subscript with `['name']`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    /// `fieldPath` of a rule.
    Allowed,
    /// `jsonPath` of a selectable field.
    Forbidden,
}

/// Finds the field that `path` names: how Kubernetes prints it, and its schema.
///
/// The error is the second half of a sentence, as in "is an invalid path: ...".
pub fn resolve<'a>(
    path: &str,
    schema: &'a Schema,
    brackets: Brackets,
) -> Result<(String, &'a Schema), String> {
    let mut tokens = Tokens { rest: path };
    let mut printed = String::new();
    let mut current = schema;
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens
                .next()
                .ok_or("unexpected end of JSON path")?
                .to_owned(),
            "[" if brackets == Brackets::Forbidden => {
                return Err("array notation is not allowed".to_owned());
            }
            "[" => {
                let quoted = tokens.next().ok_or("unexpected end of JSON path")?;
                unquote(quoted)?
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        current = step(current, &name, &mut printed)?;
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err("unexpected end of JSON path".to_owned()),
            }
        }
    }
    Ok((printed, current))
}

fn step<'a>(schema: &'a Schema, name: &str, printed: &mut String) -> Result<&'a Schema, String> {
    let unknown = || "does not refer to a valid field".to_owned();
    if !schema.properties.is_empty() {
        let property = schema.properties.get(name).ok_or_else(unknown)?;
        if !printed.is_empty() {
            printed.push('.');
        }
        printed.push_str(name);
        return Ok(property);
    }
    let additional = schema.additional_properties.as_ref().ok_or_else(unknown)?;
    printed.push('[');
    printed.push_str(name);
    printed.push(']');
    Ok(additional)
}

/// The name in single quotes, without its escapes.
fn unquote(token: &str) -> Result<String, String> {
    let inside = token
        .strip_prefix('\'')
        .and_then(|token| token.strip_suffix('\''))
        .ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    let mut out = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(quoted @ ('\'' | '\\')) => quoted,
            Some(other) => {
                return Err(format!(
                    "invalid string literal: invalid escape char \\{other}"
                ));
            }
            None => '\\',
        });
    }
    Ok(out)
}

/// Dots, brackets, quoted strings, and the texts between them.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.rest.as_bytes();
                let closes = |index: &usize| bytes[*index] == b'\'' && bytes[*index - 1] != b'\\';
                (1..bytes.len())
                    .find(closes)
                    .map_or(self.rest.len(), |index| index + 1)
            }
            _ => self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_resolved_against_the_schema() {
        let schema = crate::parse(&json!({"type": "object", "properties": {
            "a.b": {"type": "string"},
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "map": {"type": "object", "additionalProperties": {"type": "object",
                "properties": {"x": {"type": "string"}}}},
        }}))
        .unwrap();
        let cases = [
            (".spec.size", Ok("spec.size")),
            (".map.key.x", Ok("map[key].x")),
            ("['a.b']", Ok("a.b")),
            (".map['k\\'s']", Ok("map[k's]")),
            ("spec", Err("expected [ or . but got: spec")),
            (".spec.nope", Err("does not refer to a valid field")),
            (".spec.size.x", Err("does not refer to a valid field")),
            (".spec[0]", Err("expected single quoted string but got 0")),
            (".spec.", Err("unexpected end of JSON path")),
            ("['a.b'", Err("unexpected end of JSON path")),
            (
                "['a\\q']",
                Err("invalid string literal: invalid escape char \\q"),
            ),
        ];
        for (path, expected) in cases {
            let found = resolve(path, &schema, Brackets::Allowed).map(|(printed, _)| printed);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        }
        assert_eq!(
            resolve("['a.b']", &schema, Brackets::Forbidden).unwrap_err(),
            "array notation is not allowed"
        );
    }
}
