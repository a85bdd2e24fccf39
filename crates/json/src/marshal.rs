//! JSON text as Go's `encoding/json` writes it, for output that is compared with the peer's byte by
//! byte: `<`, `>`, `&` and two line separators are escaped, and floats are shown in Go's way.

use std::fmt::Write;

use serde_json::{Number, Value};

use crate::number;

/// Writes a value on one line, without spaces.
pub fn to_json(value: &Value) -> String {
    let mut writer = Writer {
        out: String::new(),
        indent: None,
        depth: 0,
    };
    writer.value(value);
    writer.out
}

/// Writes a value over several lines; each level is shifted by `indent`.
pub fn to_json_indented(value: &Value, indent: &str) -> String {
    let mut writer = Writer {
        out: String::new(),
        indent: Some(indent),
        depth: 0,
    };
    writer.value(value);
    writer.out
}

struct Writer<'indent> {
    out: String,
    indent: Option<&'indent str>,
    depth: usize,
}

impl Writer<'_> {
    /// Recursion is as deep as the value, which readers bound.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.out.push_str(&number_text(number)),
            Value::String(text) => self.string(text),
            Value::Array(items) if items.is_empty() => self.out.push_str("[]"),
            Value::Array(items) => {
                self.container('[', ']', items.iter(), Self::value);
            }
            Value::Object(map) if map.is_empty() => self.out.push_str("{}"),
            Value::Object(map) => {
                self.container('{', '}', map.iter(), |writer, (key, value)| {
                    writer.string(key);
                    writer
                        .out
                        .push_str(if writer.indent.is_some() { ": " } else { ":" });
                    writer.value(value);
                });
            }
        }
    }

    fn container<T>(
        &mut self,
        open: char,
        close: char,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.out.push(open);
        self.depth += 1;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.line_break();
            write(self, item);
        }
        self.depth -= 1;
        self.line_break();
        self.out.push(close);
    }

    fn line_break(&mut self) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(self.depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.out, "\\u{:04x}", u32::from(character));
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => number::go_json_float(float),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_escaped_for_html() {
        let value = json!({"b": "<a href='x'>&\u{2028}\u{1}\t\"é😀", "a": [1, 1.0, 1e21, null, true, {}, []]});
        assert_eq!(
            to_json(&value),
            r#"{"a":[1,1,1e+21,null,true,{},[]],"b":"\u003ca href='x'\u003e\u0026\u2028\u0001\t\"é😀"}"#
        );
    }

    #[test]
    fn levels_are_indented() {
        let value = json!({"a": [1, {"b": {}}], "c": []});
        assert_eq!(
            to_json_indented(&value, "  "),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ],\n  \"c\": []\n}"
        );
    }

    proptest! {
        #[test]
        fn strings_survive(text: String) {
            let value = json!({text.clone(): [text]});
            let read: Value = serde_json::from_str(&to_json(&value)).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
