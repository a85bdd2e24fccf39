//! Package `encoding/csv`.

use super::argument::{Outcome, any, list_elements, string_list, text, text_result};
use super::{ANY, BYTES, function, json};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "encoding/csv",
    functions: &[
        function("Encode", &[ANY], Kind::STRING, encode),
        function("Decode", &[BYTES], Kind::LIST, decode),
    ],
    source: "",
};

fn rows(host: &mut dyn Host, value: &Value) -> Result<Vec<Value>, Failure> {
    list_elements(host, value)
        .ok_or_else(|| Failure::error(format!("cannot use value of type {} as list", value.kind())))
}

fn encode(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut output = String::new();
    for row in rows(host, any(arguments, 0)?)? {
        for (position, column) in rows(host, &row)?.iter().enumerate() {
            if position > 0 {
                output.push(',');
            }
            match column {
                Value::String(text) => write_field(&mut output, text),
                other => write_field(&mut output, &json::write(other)),
            }
        }
        output.push('\n');
    }
    text_result(output)
}

fn write_field(output: &mut String, field: &str) {
    let quoted =
        field == r"\." || field.starts_with([' ', '\t']) || field.contains([',', '"', '\n', '\r']);
    if quoted {
        output.push('"');
        output.push_str(&field.replace('"', "\"\""));
        output.push('"');
    } else {
        output.push_str(field);
    }
}

fn decode(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let records = parse(text(arguments, 0)?).map_err(Failure::Error)?;
    Ok(Value::list(records.into_iter().map(string_list)))
}

/// Reads records; all must have as many fields as the first, and empty lines are skipped.
fn parse(source: &str) -> Result<Vec<Vec<String>>, String> {
    let source = source.replace("\r\n", "\n");
    let mut rest = source.as_str();
    let mut line = 1;
    let mut records: Vec<Vec<String>> = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('\n') {
            rest = after;
            line += 1;
            continue;
        }
        let start = line;
        let mut record = Vec::new();
        loop {
            let (field, after, more) = read_field(rest, &mut line)?;
            record.push(field);
            rest = after;
            if !more {
                break;
            }
        }
        if records
            .first()
            .is_some_and(|first| first.len() != record.len())
        {
            return Err(format!("record on line {start}: wrong number of fields"));
        }
        records.push(record);
    }
    Ok(records)
}

/// One field, the text after it, and whether the record goes on.
fn read_field<'a>(rest: &'a str, line: &mut usize) -> Result<(String, &'a str, bool), String> {
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', '\n']).unwrap_or(rest.len());
        let field = &rest[..end];
        if field.contains('"') {
            return Err(format!(
                "parse error on line {line}: bare \" in non-quoted-field"
            ));
        }
        return Ok(finish(field.to_owned(), &rest[end..], line));
    };
    let mut field = String::new();
    let mut tail = quoted;
    loop {
        let Some(end) = tail.find('"') else {
            return Err(format!(
                "parse error on line {line}: extraneous or missing \" in quoted-field"
            ));
        };
        field.push_str(&tail[..end]);
        *line += tail[..end].matches('\n').count();
        tail = &tail[end + 1..];
        match tail.chars().next() {
            Some('"') => {
                field.push('"');
                tail = &tail[1..];
            }
            None | Some(',' | '\n') => return Ok(finish(field, tail, line)),
            Some(_) => {
                return Err(format!(
                    "parse error on line {line}: extraneous or missing \" in quoted-field"
                ));
            }
        }
    }
}

fn finish<'a>(field: String, tail: &'a str, line: &mut usize) -> (String, &'a str, bool) {
    if let Some(after) = tail.strip_prefix(',') {
        return (field, after, true);
    }
    *line += 1;
    (field, tail.strip_prefix('\n').unwrap_or(tail), false)
}
