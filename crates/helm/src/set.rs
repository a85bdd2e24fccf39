//! The language of `--set`, `--set-string`, `--set-json`, `--set-literal` and `--set-file`.

use serde_json::{Map, Value};

use crate::values::as_floats;

/// Indexes beyond this are refused.
const MAX_INDEX: i64 = 65_536;

/// Names inside of names beyond this are refused.
const MAX_NESTED: usize = 30;

/// How the text behind `=` is read.
#[derive(Clone, Copy)]
pub(crate) enum Form<'f> {
    /// Integers, booleans and null are recognised.
    Typed,
    /// Everything is text.
    Text,
    /// A JSON value.
    Json,
    /// All that follows is text, commas too.
    Literal,
    /// The name of a file, whose content is the value.
    File(&'f dyn Fn(&str) -> Result<String, String>),
}

/// Applies one argument to values.
pub(crate) fn apply(
    text: &str,
    form: Form<'_>,
    values: &mut Map<String, Value>,
) -> Result<(), String> {
    let mut parser = Parser { rest: text, form };
    loop {
        match parser.key(values, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Wrong(message)) => return Err(message),
        }
    }
}

/// Why parsing stops.
enum Stop {
    /// The text is at its end, in a place where that is right.
    End,
    Wrong(String),
}

fn wrong<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Wrong(message.into()))
}

struct Parser<'t> {
    rest: &'t str,
    form: Form<'t>,
}

impl Parser<'_> {
    fn is_literal(&self) -> bool {
        matches!(self.form, Form::Literal)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    /// Characters up to one of `stops`, which is returned, too; `None` at the end of the text.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(character) = self.next() {
            if stops.contains(&character) {
                return (text, Some(character));
            }
            if character == '\\' && !self.is_literal() {
                match self.next() {
                    Some(escaped) => text.push(escaped),
                    None => return (text, None),
                }
            } else {
                text.push(character);
            }
        }
        (text, None)
    }

    fn key(&mut self, data: &mut Map<String, Value>, level: usize) -> Result<(), Stop> {
        let stops: &[char] = if self.is_literal() {
            &['=', '[', '.']
        } else {
            &['=', '[', ',', '.']
        };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(Stop::End),
            None => wrong(format!("key {key:?} has no value")),
            Some('=') => {
                let (value, end) = self.value()?;
                put(data, &key, value);
                if end { Err(Stop::End) } else { Ok(()) }
            }
            Some('[') => {
                let index = self.index()?;
                let list = match data.get_mut(&key).map(Value::take) {
                    None => Vec::new(),
                    Some(Value::Array(list)) => list,
                    Some(other) => {
                        return wrong(format!("unable to parse key: {other} is not a list"));
                    }
                };
                let (list, result) = self.item(list, index, level);
                put(data, &key, Value::Array(list));
                result
            }
            Some('.') => self.inner(data, &key, level + 1),
            Some(_) => {
                put(data, &key, Value::from(""));
                wrong(format!("key {key:?} has no value (cannot end with ,)"))
            }
        }
    }

    fn inner(
        &mut self,
        data: &mut Map<String, Value>,
        key: &str,
        level: usize,
    ) -> Result<(), Stop> {
        if level > MAX_NESTED {
            return wrong(format!(
                "value name nested level is greater than maximum supported nested level of \
                 {MAX_NESTED}"
            ));
        }
        let mut inner = match data.get_mut(key).map(Value::take) {
            None => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(other) => return wrong(format!("unable to parse key: {other} is not a table")),
        };
        let result = self.key(&mut inner, level);
        if result.is_ok() && inner.is_empty() {
            return wrong(format!("key map {key:?} has no value"));
        }
        if !inner.is_empty() {
            put(data, key, Value::Object(inner));
        }
        result
    }

    fn index(&mut self) -> Result<i64, Stop> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return wrong("error parsing index: EOF");
        }
        match text.parse() {
            Ok(index) => Ok(index),
            Err(_) => wrong(format!(
                "error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax"
            )),
        }
    }

    /// Sets an item; the list comes back also with an error, as far as it was changed.
    fn item(
        &mut self,
        mut list: Vec<Value>,
        index: i64,
        level: usize,
    ) -> (Vec<Value>, Result<(), Stop>) {
        let at = match checked(index) {
            Ok(at) => at,
            Err(message) => return (list, wrong(message)),
        };
        let (key, stop) = self.until(&['[', '.', '=']);
        if !key.is_empty() {
            let message = format!("unexpected data at end of array index: {key:?}");
            return (list, wrong(message));
        }
        let (value, result) = match stop {
            None => return (list, Err(Stop::End)),
            Some('=') => match self.value() {
                Ok((value, _)) => (value, Ok(())),
                Err(stop) => return (list, Err(stop)),
            },
            Some('[') => {
                let next = match self.index() {
                    Ok(next) => next,
                    Err(stop) => return (list, Err(stop)),
                };
                let inner = match list.get_mut(at).map(Value::take) {
                    Some(Value::Array(inner)) => inner,
                    _ => Vec::new(),
                };
                match self.item(inner, next, level) {
                    (inner, Ok(())) => (Value::Array(inner), Ok(())),
                    (_, Err(stop)) => return (list, Err(stop)),
                }
            }
            Some(_) => {
                let mut inner = match list.get_mut(at).map(Value::take) {
                    Some(Value::Object(inner)) => inner,
                    _ => Map::new(),
                };
                let result = self.key(&mut inner, level);
                if let Err(Stop::Wrong(message)) = result {
                    return (list, wrong(message));
                }
                (Value::Object(inner), result)
            }
        };
        if list.len() <= at {
            list.resize(at + 1, Value::Null);
        }
        list[at] = value;
        (list, result)
    }

    /// The value behind `=`, and whether the text is at its end.
    fn value(&mut self) -> Result<(Value, bool), Stop> {
        match self.form {
            Form::Literal => {
                let text = std::mem::take(&mut self.rest);
                return Ok((Value::from(text), false));
            }
            Form::Json => return self.json(),
            _ => {}
        }
        if self.rest.is_empty() {
            return Ok((Value::from(""), true));
        }
        if let Some(rest) = self.rest.strip_prefix('{') {
            self.rest = rest;
            return Ok((self.list()?, false));
        }
        let (text, _) = self.until(&[',']);
        Ok((self.typed(&text)?, false))
    }

    fn json(&mut self) -> Result<(Value, bool), Stop> {
        if self.is_empty_value() {
            return Ok((Value::Null, false));
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        let mut value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return wrong(error.to_string()),
            None => return wrong("EOF"),
        };
        self.rest = &self.rest[stream.byte_offset()..];
        as_floats(&mut value);
        self.is_empty_value();
        Ok((value, false))
    }

    /// Skips spaces and one comma; true if there was nothing before it.
    fn is_empty_value(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            return true;
        }
        self.rest.is_empty()
    }

    /// A list in braces.
    fn list(&mut self) -> Result<Value, Stop> {
        let mut list = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            if stop.is_none() {
                return wrong("list must terminate with '}'");
            }
            list.push(self.typed(&text)?);
            if stop == Some('}') {
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                return Ok(Value::Array(list));
            }
        }
    }

    fn typed(&self, text: &str) -> Result<Value, Stop> {
        match self.form {
            Form::File(read) => match read(text) {
                Ok(content) => Ok(Value::String(content)),
                Err(message) => wrong(message),
            },
            Form::Typed => Ok(typed(text)),
            _ => Ok(Value::from(text)),
        }
    }
}

/// Integers, booleans and null; numbers that begin with a zero are texts.
fn typed(text: &str) -> Value {
    for (word, value) in [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
    ] {
        if text.eq_ignore_ascii_case(word) {
            return value;
        }
    }
    let is_number = text == "0" || !text.starts_with('0');
    match text.parse::<i64>() {
        Ok(number) if is_number => Value::from(number),
        _ => Value::from(text),
    }
}

fn put(data: &mut Map<String, Value>, key: &str, value: Value) {
    if !key.is_empty() {
        data.insert(key.to_owned(), value);
    }
}

fn checked(index: i64) -> Result<usize, String> {
    if index < 0 {
        return Err(format!("negative {index} index not allowed"));
    }
    if index > MAX_INDEX {
        return Err(format!(
            "index of {index} is greater than maximum supported index of {MAX_INDEX}"
        ));
    }
    usize::try_from(index).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, form: Form<'_>, expected: &Value) {
        let mut values = Map::new();
        let result = apply(text, form, &mut values);
        match expected {
            Value::String(message) => assert_eq!(result.as_ref(), Err(message), "{text}"),
            expected => {
                assert_eq!(result, Ok(()), "{text}");
                assert_eq!(Value::Object(values), *expected, "{text}");
            }
        }
    }

    #[test]
    fn flags_are_read_as_helm_reads_them() {
        check(
            "a=1,b=true,c=null,d=text,e=1.5,f=0123,g=",
            Form::Typed,
            &json!({"a": 1, "b": true, "c": null, "d": "text", "e": "1.5", "f": "0123", "g": ""}),
        );
        check(
            "a.b[1].c=x,a.b[0]=y",
            Form::Typed,
            &json!({"a": {"b": ["y", {"c": "x"}]}}),
        );
        check(
            "l={a,2,},k=v",
            Form::Typed,
            &json!({"l": ["a", 2, ""], "k": "v"}),
        );
        check(
            "k=a\\,b,x\\.y=1",
            Form::Typed,
            &json!({"k": "a,b", "x.y": 1}),
        );
        check("a=1", Form::Text, &json!({"a": "1"}));
        check("k=a,b={x}", Form::Literal, &json!({"k": "a,b={x}"}));
        check(
            "o={\"a\":[1]},n=null",
            Form::Json,
            &json!({"o": {"a": [1.0]}, "n": null}),
        );
        check("=x", Form::Typed, &json!({}));
        check("a", Form::Typed, &json!("key \"a\" has no value"));
        check(
            "a,b=1",
            Form::Typed,
            &json!("key \"a\" has no value (cannot end with ,)"),
        );
        check("l={a", Form::Typed, &json!("list must terminate with '}'"));
        check(
            "l[-1]=x",
            Form::Typed,
            &json!("negative -1 index not allowed"),
        );
    }
}
