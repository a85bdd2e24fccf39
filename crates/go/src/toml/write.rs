//! Writes values as the TOML library does that Helm uses.

use crate::float;
use crate::value::{List, Map, Meter, Value};

/// Values nested deeper than this are refused.
const DEPTH_LIMIT: usize = 200;

/// Writes a value. A map becomes tables; anything else but a list is written as it is.
pub fn write(value: &Value, meter: &mut dyn Meter) -> Result<String, String> {
    let mut writer = Writer {
        out: String::new(),
        meter,
    };
    match value {
        Value::Map(map) => writer.table(map, &mut Vec::new(), 0)?,
        Value::Invalid | Value::Nil => {
            return Err("toml: cannot encode a nil pointer".to_owned());
        }
        Value::List(_) => {
            return Err("toml: top-level values must be Go maps or structs".to_owned());
        }
        Value::Object(object) => return write(&object.data(), writer.meter),
        scalar => writer.scalar(scalar, 0)?,
    }
    Ok(writer.out)
}

struct Writer<'m> {
    out: String,
    meter: &'m mut dyn Meter,
}

/// What is written as tables of their own, after everything else.
fn is_table(value: &Value) -> bool {
    match value {
        Value::Map(_) => true,
        Value::List(list) => is_array_of_tables(list),
        _ => false,
    }
}

fn is_array_of_tables(list: &List) -> bool {
    !list.is_empty() && list.iter().all(|item| matches!(item, Value::Map(_)))
}

impl Writer<'_> {
    fn push(&mut self, text: &str) -> Result<(), String> {
        self.meter.charge(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn table(&mut self, map: &Map, path: &mut Vec<String>, depth: usize) -> Result<(), String> {
        if depth > DEPTH_LIMIT {
            return Err("toml: values are nested too deeply".to_owned());
        }
        let entries = map.entries();
        let indent = "  ".repeat(path.len());
        for (key, value) in entries.iter().filter(|(_, value)| !is_table(value)) {
            if value.is_nil() {
                continue;
            }
            let key = quoted_key(&key.to_str());
            self.push(&format!("{indent}{key} = "))?;
            self.scalar(value, depth + 1)?;
            self.push("\n")?;
        }
        for (key, value) in entries.iter().filter(|(_, value)| is_table(value)) {
            path.push(quoted_key(&key.to_str()));
            let (indent, name) = ("  ".repeat(path.len() - 1), path.join("."));
            match value {
                Value::Map(inner) => {
                    self.header(&format!("{indent}[{name}]\n"), path.len())?;
                    self.table(inner, path, depth + 1)?;
                }
                Value::List(list) => {
                    for item in list {
                        self.header(&format!("{indent}[[{name}]]\n"), path.len())?;
                        if let Value::Map(inner) = item {
                            self.table(inner, path, depth + 1)?;
                        }
                    }
                }
                _ => {}
            }
            path.pop();
        }
        Ok(())
    }

    /// A line stays empty before a table of the first level.
    fn header(&mut self, line: &str, level: usize) -> Result<(), String> {
        if level == 1 && !self.out.is_empty() {
            self.push("\n")?;
        }
        self.push(line)
    }

    fn scalar(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH_LIMIT {
            return Err("toml: values are nested too deeply".to_owned());
        }
        match value {
            Value::Bool(flag) => self.push(if *flag { "true" } else { "false" }),
            Value::Int(_, number) => self.push(&number.to_string()),
            Value::Uint(_, number) => self.push(&number.to_string()),
            Value::Float(number) => self.push(&float_text(*number)),
            Value::String(text) => self.push(&quoted(&text.to_str())),
            Value::List(list) => {
                self.push("[")?;
                for (index, item) in list.iter().enumerate() {
                    if index > 0 {
                        self.push(", ")?;
                    }
                    if item.is_nil() {
                        return Err("toml: cannot encode array with nil element".to_owned());
                    }
                    self.scalar(item, depth + 1)?;
                }
                self.push("]")
            }
            Value::Map(map) => {
                self.push("{")?;
                let entries = map.entries();
                let present = entries.iter().filter(|(_, value)| !value.is_nil());
                for (index, (key, item)) in present.enumerate() {
                    if index > 0 {
                        self.push(", ")?;
                    }
                    self.push(&format!("{} = ", quoted_key(&key.to_str())))?;
                    self.scalar(item, depth + 1)?;
                }
                self.push("}")
            }
            Value::Object(object) => self.scalar(&object.data(), depth + 1),
            Value::Complex(..) => Err("toml: unsupported type: complex128".to_owned()),
            Value::Invalid | Value::Nil => Ok(()),
        }
    }
}

/// Floats have a point or an exponent.
fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+inf" } else { "-inf" }.to_owned();
    }
    let text = float::shortest(value);
    if text.contains(['.', 'e']) {
        text
    } else {
        format!("{text}.0")
    }
}

fn quoted_key(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => {
                let code = format!("\\u{:04x}", u32::from(c));
                out.push_str(&code);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
