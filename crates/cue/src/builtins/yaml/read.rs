//! Reads YAML text into values, keeping field order.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_go::base64;
use granit_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use super::scalar;
use crate::value::Value;

/// Deeper nesting is refused; the reader recurses.
const DEPTH_LIMIT: usize = 250;

/// Values an alias may expand to in total, so that nested aliases cannot explode.
const NODE_LIMIT: usize = 1 << 20;

/// Reads text that holds one document; none at all is `null`.
pub fn parse(source: &str) -> Result<Value, String> {
    let mut documents = parse_stream(source)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.remove(0)),
        count => Err(format!("expected a single YAML document, found {count}")),
    }
}

/// Reads every document of a stream.
pub fn parse_stream(source: &str) -> Result<Vec<Value>, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(source),
        anchors: HashMap::new(),
        depth: 0,
        nodes: 0,
    };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(documents),
            Event::DocumentStart(..) => {
                let first = reader.next()?;
                documents.push(reader.node(&first)?.0);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, (Value, usize)>,
    depth: usize,
    nodes: usize,
}

/// A value and the number of nodes in it.
type Sized = (Value, usize);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.events.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(format!("yaml: {error}")),
            None => Ok(Event::StreamEnd),
        }
    }

    fn node(&mut self, event: &Event<'a>) -> Result<Sized, String> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err("yaml: exceeded max depth".to_owned());
        }
        let (value, size) = match event {
            Event::Scalar(text, style, _, tag) => (scalar_value(text, *style, tag.as_deref())?, 1),
            Event::SequenceStart(..) => self.sequence()?,
            Event::MappingStart(..) => self.mapping()?,
            Event::Alias(id) => {
                let target = self.anchors.get(id).cloned();
                target.ok_or_else(|| "yaml: anchor value contains itself".to_owned())?
            }
            Event::DocumentEnd | Event::StreamEnd => (Value::Null, 1),
            other => return Err(format!("yaml: unexpected {other:?}")),
        };
        self.depth -= 1;
        self.nodes += if matches!(event, Event::Alias(_)) {
            size
        } else {
            1
        };
        if self.nodes > NODE_LIMIT {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        if let Some(id) = event.anchor_id() {
            self.anchors.insert(id, (value.clone(), size));
        }
        Ok((value, size))
    }

    fn sequence(&mut self) -> Result<Sized, String> {
        let mut items = Vec::new();
        let mut size = 1;
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok((Value::list(items), size)),
                event => {
                    let (value, nodes) = self.node(&event)?;
                    size += nodes;
                    items.push(value);
                }
            }
        }
    }

    fn mapping(&mut self) -> Result<Sized, String> {
        let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
        let mut positions: HashMap<Arc<str>, usize> = HashMap::new();
        let mut merges = Vec::new();
        let mut size = 1;
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => event,
            };
            let merge =
                matches!(&key, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let label = self.label(&key)?;
            let event = self.next()?;
            let (value, nodes) = self.node(&event)?;
            size += nodes;
            if merge {
                merges.push(value);
                continue;
            }
            if positions.insert(label.clone(), fields.len()).is_some() {
                return Err(format!("yaml: mapping key {label:?} already defined"));
            }
            fields.push((label, value));
        }
        for merged in merges {
            merge_fields(&mut fields, &mut positions, &merged)?;
        }
        Ok((Value::structure(fields), size))
    }

    /// Keys become labels: scalars in their written form.
    fn label(&mut self, event: &Event<'a>) -> Result<Arc<str>, String> {
        let text = match event {
            Event::Scalar(text, ..) => text.clone().into_owned(),
            Event::Alias(_) => match self.node(event)?.0 {
                Value::String(text) => return Ok(text),
                _ => return Err("yaml: invalid map key".to_owned()),
            },
            _ => return Err("yaml: invalid map key: expected a scalar".to_owned()),
        };
        if let Some(id) = event.anchor_id() {
            self.anchors.insert(id, (Value::string(text.as_str()), 1));
        }
        Ok(text.into())
    }
}

/// `<<` brings the fields of a mapping, or of several; what is already there stays.
fn merge_fields(
    fields: &mut Vec<(Arc<str>, Value)>,
    positions: &mut HashMap<Arc<str>, usize>,
    merged: &Value,
) -> Result<(), String> {
    match merged {
        Value::Struct(entries) => {
            for (label, value) in entries.iter() {
                if !positions.contains_key(label) {
                    positions.insert(label.clone(), fields.len());
                    fields.push((label.clone(), value.clone()));
                }
            }
            Ok(())
        }
        Value::List(items) => items.iter().try_for_each(|item| match item {
            Value::Struct(_) => merge_fields(fields, positions, item),
            _ => Err("yaml: map merge requires map or sequence of maps as the value".into()),
        }),
        _ => Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
    }
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let Some(suffix) = tag.map(|tag| tag.core_suffix().unwrap_or(tag.suffix()).to_owned()) else {
        return match style {
            ScalarStyle::Plain => scalar::resolve(text),
            _ => Ok(Value::string(text)),
        };
    };
    let mismatch = || format!("cannot decode {text:?} as !!{suffix}");
    match suffix.as_str() {
        "str" | "timestamp" | "" => Ok(Value::string(text)),
        "null" => Ok(Value::Null),
        "bool" => match scalar::resolve(text)? {
            value @ Value::Bool(_) => Ok(value),
            _ => Err(mismatch()),
        },
        "int" => match scalar::number(text) {
            Some(number) if number.is_int() => Ok(Value::Number(number)),
            _ => Err(mismatch()),
        },
        "float" => scalar::number(text).map(Value::Number).ok_or_else(mismatch),
        "binary" => {
            let digits: String = text.split_whitespace().collect();
            match base64::decode(digits.as_bytes()) {
                Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                Err(_) => Err("!!binary value contains invalid base64 data".to_owned()),
            }
        }
        _ => Err(format!("cannot unmarshal tag {suffix:?}")),
    }
}
