//! What is derived from a small type.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{filled_with, keyed_by, keyed_by_both, nullable, root, rule, unwrap_lines};

/// A lamp,
/// which shines.
///
/// It may be off.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule("has(self.name)", "has a name"), transform = rule("true", "always"))]
struct Lamp {
    name: String,
    #[serde(default)]
    watts: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(3))]
    shade: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bulb: Option<Bulb>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    colour: Option<Colour>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("id"))]
    parts: Vec<Bulb>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Bulb {
    id: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Colour {
    Red,
    White,
}

fn property(name: &str) -> Value {
    root::<Lamp>()["properties"][name].clone()
}

#[test]
fn optional_fields_are_not_nullable() {
    let bulb = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
    });
    assert_eq!(property("bulb"), bulb);
    assert_eq!(
        property("colour"),
        json!({"type": "string", "enum": ["Red", "White"]})
    );
}

#[test]
fn only_what_is_declared_is_filled_in() {
    assert_eq!(
        property("watts"),
        json!({"type": "integer", "format": "int32"})
    );
    assert_eq!(
        property("shade"),
        json!({"type": "integer", "format": "int32", "default": 3})
    );
}

#[test]
fn fields_are_required_unless_they_may_be_absent() {
    assert_eq!(root::<Lamp>()["required"], json!(["name"]));
}

#[test]
fn objects_have_a_type_and_metadata() {
    assert_eq!(property("apiVersion")["type"], "string");
    assert_eq!(property("kind")["type"], "string");
    assert_eq!(property("metadata"), json!({"type": "object"}));
}

#[test]
fn rules_add_up() {
    let rules = json!([
        {"rule": "has(self.name)", "message": "has a name"},
        {"rule": "true", "message": "always"},
    ]);
    assert_eq!(root::<Lamp>()["x-kubernetes-validations"], rules);
}

#[test]
fn lists_are_keyed() {
    assert_eq!(property("parts")["x-kubernetes-list-type"], "map");
    assert_eq!(
        property("parts")["x-kubernetes-list-map-keys"],
        json!(["id"])
    );
    let mut schema = Schema::default();
    keyed_by_both("a", "b")(&mut schema);
    assert_eq!(
        schema.as_value()["x-kubernetes-list-map-keys"],
        json!(["a", "b"])
    );
}

#[test]
fn null_can_be_allowed() {
    let mut schema = Schema::default();
    nullable(&mut schema);
    assert_eq!(schema.as_value(), &json!({"nullable": true}));
}

#[test]
fn descriptions_are_paragraphs() {
    assert_eq!(
        root::<Lamp>()["description"],
        "A lamp, which shines.\n\nIt may be off."
    );
    assert_eq!(unwrap_lines("one\n two\n\nthree"), "one two\n\nthree");
    assert_eq!(unwrap_lines(""), "");
}
