//! YAML as templates write and read it, which is that of `gopkg.in/yaml.v3`.

use std::cmp::Ordering;

use bellwether_go::print::text;
use bellwether_go::value::{JsonError, Kind, Named, Object, UintKind, Value};
use bellwether_json::number;
use bellwether_json::yaml::{Node, YamlStyle};
use bellwether_template::sprig;
use serde_json::{Map, Number, Value as Json};

/// The layout of YAML in templates: lists are indented, lines are never folded.
pub(super) const STYLE: YamlStyle = YamlStyle {
    fold_after: None,
    indent_lists: true,
    is_direct: true,
    is_v3: true,
};

/// The name of Go's type for maps whose keys are not all strings.
const MIXED_MAP_TYPE: &str = "map[interface {}]interface {}";

/// The JSON of a node, with the errors of `encoding/json`.
pub(super) fn to_json(node: Node) -> Result<Json, JsonError> {
    Ok(match node {
        Node::Null => Json::Null,
        Node::Bool(flag) => Json::Bool(flag),
        Node::Integer(integer) => Json::from(integer),
        Node::Unsigned(integer) => Json::from(integer),
        Node::Float(float) => Json::Number(json_number(float)?),
        Node::Timestamp(text) | Node::String(text) => Json::String(text),
        Node::List(items) => {
            let items: Result<_, _> = items.into_iter().map(to_json).collect();
            Json::Array(items?)
        }
        Node::Map(entries) => {
            let mut fields = Map::new();
            for (key, node) in entries {
                let Node::String(key) = key else {
                    return Err(JsonError::Type(MIXED_MAP_TYPE.to_owned()));
                };
                fields.insert(key, to_json(node)?);
            }
            Json::Object(fields)
        }
    })
}

/// The number that `encoding/json` writes: an integer of any size if it has no fraction.
fn json_number(float: f64) -> Result<Number, JsonError> {
    let unsupported = || JsonError::Number(number::go_general_float(float));
    if !float.is_finite() {
        return Err(unsupported());
    }
    let text = number::go_json_float(float);
    let integer = text.parse::<i64>().map(Number::from);
    let integer = integer.or_else(|_| text.parse::<u64>().map(Number::from));
    integer.or_else(|_| Number::from_f64(float).ok_or_else(unsupported))
}

/// The value that `fromYaml` returns.
pub(super) fn to_value(node: Node) -> Value {
    match node {
        Node::Null => Value::Nil,
        Node::Bool(flag) => Value::Bool(flag),
        Node::Integer(integer) => Value::int(integer),
        Node::Unsigned(integer) => Value::Uint(UintKind::Uint64, integer),
        Node::Float(float) => Value::Float(float),
        Node::Timestamp(time) => sprig::time_of(&time).unwrap_or_else(|| Value::string(time)),
        Node::String(string) => Value::string(string),
        Node::List(items) => Value::list(items.into_iter().map(to_value).collect()),
        Node::Map(entries) => {
            let is_text = |(key, _): &(Node, Node)| matches!(key, Node::String(_));
            if !entries.iter().all(is_text) {
                return Value::object(MixedMap::new(entries));
            }
            let entries = entries.into_iter().filter_map(|(key, node)| match key {
                Node::String(key) => Some((key, to_value(node))),
                _ => None,
            });
            Value::map(entries)
        }
    }
}

/// A `map[interface {}]interface {}`: keys of YAML need not be strings. It can be printed, but it is not JSON.
#[derive(Debug)]
struct MixedMap(Vec<(Value, Value)>);

static MIXED_MAP: Named = Named {
    name: MIXED_MAP_TYPE,
    methods: &[],
};

impl MixedMap {
    fn new(mut entries: Vec<(Node, Node)>) -> Self {
        entries.sort_by(|(a, _), (b, _)| order(a, b));
        let values = |(key, node)| (to_value(key), to_value(node));
        Self(entries.into_iter().map(values).collect())
    }
}

/// The order in which Go prints keys: by type, then by value.
fn order(a: &Node, b: &Node) -> Ordering {
    let rank = |node: &Node| match node {
        Node::Null => 0,
        Node::String(_) => 1,
        Node::Integer(_) => 2,
        Node::Unsigned(_) => 3,
        Node::Float(_) => 4,
        Node::Bool(_) => 5,
        _ => 6,
    };
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Node::Integer(a), Node::Integer(b)) => a.cmp(b),
        (Node::Unsigned(a), Node::Unsigned(b)) => a.cmp(b),
        (Node::Float(a), Node::Float(b)) => a.total_cmp(b),
        (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
        (Node::String(a), Node::String(b)) | (Node::Timestamp(a), Node::Timestamp(b)) => a.cmp(b),
        _ => Ordering::Equal,
    })
}

impl Object for MixedMap {
    fn named(&self) -> &'static Named {
        &MIXED_MAP
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn string(&self) -> Option<String> {
        let shown = |(key, value): &(Value, Value)| format!("{}:{}", text(key), text(value));
        let entries: Vec<String> = self.0.iter().map(shown).collect();
        Some(format!("map[{}]", entries.join(" ")))
    }

    /// JSON has no such maps, nor complex numbers: both are errors.
    fn data(&self) -> Value {
        Value::Complex(0.0, 0.0)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
