//! Schemas in published OpenAPI documents, version 3 and version 2.
//!
//! [`publish`] writes one schema; types that have a name become references, and their definitions are
//! collected once. [`publish_resource`] adds what every resource has.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::document::{number, rule_to_json};
use crate::model::{Limits, ListType, MapType, PatchStrategy, Schema, Type};

/// A version of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenApi {
    /// `/openapi/v2`: no logical junctors, no `nullable`, no defaults.
    V2,
    /// `/openapi/v3`
    V3,
}

impl OpenApi {
    /// The reference to the definition called `name`.
    pub fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }
}

/// Name of the definition of metadata.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Definitions by their name.
pub type Definitions = BTreeMap<String, Value>;

/// The schema in JSON; definitions of the types that it names are added to `definitions`.
pub fn publish(schema: &Schema, version: OpenApi, definitions: &mut Definitions) -> Value {
    Value::Object(
        Publisher {
            version,
            definitions,
            implied: true,
        }
        .node(schema),
    )
}

/// The schema in JSON as it was written: without what is implied, and without references.
pub(crate) fn as_written(schema: &Schema) -> Value {
    let mut definitions = Definitions::new();
    let mut publisher = Publisher {
        version: OpenApi::V3,
        definitions: &mut definitions,
        implied: false,
    };
    Value::Object(publisher.node(schema))
}

/// The schema of a resource that is not built in: with `apiVersion`, `kind` and `metadata`.
pub fn publish_resource(
    schema: &Schema,
    group_version_kind: (&str, &str, &str),
    version: OpenApi,
    definitions: &mut Definitions,
) -> Value {
    // kubectl takes properties for all there is, so that an open resource has none in version 2.
    let mut node = if version == OpenApi::V2 && schema.preserve_unknown_fields {
        Map::from_iter([("type".to_owned(), "object".into())])
    } else {
        let mut publisher = Publisher {
            version,
            definitions,
            implied: true,
        };
        let mut node = publisher.node(schema);
        publisher.add_resource_fields(&mut node);
        node
    };
    let (group, api_version, kind) = group_version_kind;
    node.insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([{"group": group, "version": api_version, "kind": kind}]),
    );
    Value::Object(node)
}

struct Publisher<'a> {
    version: OpenApi,
    definitions: &'a mut Definitions,
    /// Whether to add what is implied: the fields of embedded resources, the types of
    /// int-or-string.
    implied: bool,
}

// Recursion is as deep as the schema.
impl Publisher<'_> {
    /// A schema inside another: in place, or as a reference to its definition.
    fn child(&mut self, schema: &Schema) -> Value {
        let Some(name) = schema.type_name.as_deref().filter(|_| self.implied) else {
            return Value::Object(self.node(schema));
        };
        if !self.definitions.contains_key(name) {
            // Present before it is complete, so that nothing is written twice.
            self.definitions.insert(name.to_owned(), Value::Null);
            let definition = Value::Object(self.node(schema));
            self.definitions.insert(name.to_owned(), definition);
        }
        let reference = self.version.reference(name);
        let Some(description) = schema.description.as_deref() else {
            return reference;
        };
        // Beside a reference, version 3 allows nothing else.
        match self.version {
            OpenApi::V2 => json!({"$ref": reference["$ref"], "description": description}),
            OpenApi::V3 => json!({"allOf": [reference], "description": description}),
        }
    }

    fn node(&mut self, schema: &Schema) -> Map<String, Value> {
        let mut node = Map::new();
        // Version 2 has no null, and kubectl takes the absence of a type for anything.
        let untyped =
            self.version == OpenApi::V2 && (schema.nullable || schema.preserve_unknown_fields);
        self.generic(schema, untyped, &mut node);
        if !untyped {
            self.structure(schema, &mut node);
        }
        if let Some(additional) = &schema.additional_properties {
            let additional = match () {
                () if schema.closed => Value::Bool(false),
                () if additional.is_unspecified() => Value::Bool(true),
                () => self.child(additional),
            };
            node.insert("additionalProperties".to_owned(), additional);
        }
        self.required(schema, &mut node);
        limits(&schema.limits, &mut node);
        if self.version == OpenApi::V3 {
            self.logic(schema, &mut node);
        }
        extensions(schema, &mut node);
        if self.implied && schema.embedded_resource && !(untyped && schema.preserve_unknown_fields)
        {
            self.add_resource_fields(&mut node);
            require(&mut node, "kind");
            require(&mut node, "apiVersion");
        }
        node
    }

    fn generic(&self, schema: &Schema, untyped: bool, node: &mut Map<String, Value>) {
        let mut set = |key: &str, value: Value| {
            node.insert(key.to_owned(), value);
        };
        if let Some(description) = &schema.description {
            set("description", description.as_ref().into());
        }
        if let Some(title) = &schema.title {
            set("title", title.as_str().into());
        }
        if schema.int_or_string && schema.type_name.is_some() {
            set("format", "int-or-string".into());
            match self.version {
                OpenApi::V2 => set("type", "string".into()),
                OpenApi::V3 => set("oneOf", json!([{"type": "integer"}, {"type": "string"}])),
            }
            return;
        }
        let itemless = self.version == OpenApi::V2 && schema.items.is_none();
        let kind = schema
            .kind
            .filter(|kind| !(untyped || (itemless && *kind == Type::Array)));
        if let Some(kind) = kind {
            set("type", kind.name().into());
        }
        if let Some(format) = &schema.format {
            set("format", format.as_str().into());
        }
        if self.version == OpenApi::V3 {
            if let Some(default) = &schema.default {
                set("default", default.clone());
            }
            if schema.nullable {
                set("nullable", true.into());
            }
        }
    }

    fn structure(&mut self, schema: &Schema, node: &mut Map<String, Value>) {
        if let Some(items) = &schema.items {
            let items = self.child(items);
            node.insert("items".to_owned(), items);
        }
        if !schema.properties.is_empty() {
            let mut properties = Map::new();
            for (name, property) in &schema.properties {
                let mut published = self.child(property);
                if let (Some(patch), Value::Object(published)) = (&property.patch, &mut published) {
                    patch_strategy(patch, published);
                }
                properties.insert(name.clone(), published);
            }
            node.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    fn required(&self, schema: &Schema, node: &mut Map<String, Value>) {
        // Where null passes in version 2, the field cannot be required there.
        let is_nullable = |name: &String| {
            schema
                .properties
                .get(name)
                .is_some_and(|property| property.nullable)
        };
        let required: Vec<&String> = schema
            .required
            .iter()
            .filter(|name| self.version == OpenApi::V3 || !is_nullable(name))
            .collect();
        if !required.is_empty() {
            node.insert("required".to_owned(), json!(required));
        }
    }

    fn logic(&mut self, schema: &Schema, node: &mut Map<String, Value>) {
        let logic = &schema.logic;
        for (keyword, nested) in [
            ("allOf", &logic.all_of),
            ("anyOf", &logic.any_of),
            ("oneOf", &logic.one_of),
        ] {
            if !nested.is_empty() {
                let nested = nested
                    .iter()
                    .map(|schema| Value::Object(self.node(schema)))
                    .collect();
                node.insert(keyword.to_owned(), Value::Array(nested));
            }
        }
        if let Some(not) = &logic.not {
            let not = Value::Object(self.node(not));
            node.insert("not".to_owned(), not);
        }
        if self.implied && schema.int_or_string && schema.type_name.is_none() {
            spell_out_int_or_string(node);
        }
    }

    fn add_resource_fields(&self, node: &mut Map<String, Value>) {
        let properties = node
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(properties) = properties else {
            return;
        };
        let described = |text: &str| json!({"type": "string", "description": text});
        let metadata_text = "Name, labels and other data that every object has.";
        let reference = self.version.reference(OBJECT_META);
        let metadata = match self.version {
            OpenApi::V2 => json!({"$ref": reference["$ref"], "description": metadata_text}),
            OpenApi::V3 => json!({"allOf": [reference], "description": metadata_text}),
        };
        properties.insert("metadata".to_owned(), metadata);
        let text = "Group and version of the schema that this object follows.";
        properties.insert("apiVersion".to_owned(), described(text));
        let text = "Kind of this object, in CamelCase; cannot be changed.";
        properties.insert("kind".to_owned(), described(text));
    }
}

/// Readers that do not know the extension find the two types in a junctor.
fn spell_out_int_or_string(node: &mut Map<String, Value>) {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let in_all_of = |all_of: &Value| all_of[0].get("anyOf") == Some(&both);
    if node.get("anyOf") == Some(&both) || node.get("allOf").is_some_and(in_all_of) {
        return;
    }
    if !node.contains_key("anyOf") {
        node.insert("anyOf".to_owned(), both);
        return;
    }
    let all_of = node
        .entry("allOf")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all_of) = all_of {
        all_of.insert(0, json!({"anyOf": both}));
    }
}

fn require(node: &mut Map<String, Value>, name: &str) {
    let required = node
        .entry("required")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required
        && !required.iter().any(|known| known == name)
    {
        required.push(name.into());
    }
}

fn limits(limits: &Limits, node: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            node.insert(key.to_owned(), value);
        }
    };
    let flag = |flag: bool| flag.then_some(Value::Bool(true));
    set("minimum", limits.minimum.map(number));
    set("exclusiveMinimum", flag(limits.exclusive_minimum));
    set("maximum", limits.maximum.map(number));
    set("exclusiveMaximum", flag(limits.exclusive_maximum));
    set("multipleOf", limits.multiple_of.map(number));
    set("minLength", limits.min_length.map(Value::from));
    set("maxLength", limits.max_length.map(Value::from));
    set("pattern", limits.pattern.as_deref().map(Value::from));
    set("minItems", limits.min_items.map(Value::from));
    set("maxItems", limits.max_items.map(Value::from));
    set("uniqueItems", flag(limits.unique_items));
    set("minProperties", limits.min_properties.map(Value::from));
    set("maxProperties", limits.max_properties.map(Value::from));
    let values = &limits.one_of_values;
    set(
        "enum",
        (!values.is_empty()).then(|| Value::Array(values.clone())),
    );
}

fn extensions(schema: &Schema, node: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| {
        node.insert(format!("x-kubernetes-{key}"), value);
    };
    if schema.preserve_unknown_fields {
        set("preserve-unknown-fields", true.into());
    }
    if schema.embedded_resource {
        set("embedded-resource", true.into());
    }
    if schema.int_or_string && schema.type_name.is_none() {
        set("int-or-string", true.into());
    }
    match &schema.list_type {
        ListType::Atomic => {}
        ListType::Set => set("list-type", "set".into()),
        ListType::Map(keys) => {
            set("list-type", "map".into());
            set("list-map-keys", json!(keys));
        }
    }
    if schema.map_type == MapType::Atomic {
        set("map-type", "atomic".into());
    }
    if !schema.rules.is_empty() {
        set(
            "validations",
            schema.rules.iter().map(rule_to_json).collect(),
        );
    }
}

fn patch_strategy(patch: &PatchStrategy, node: &mut Map<String, Value>) {
    let strategies = [("merge", patch.merge), ("retainKeys", patch.retain_keys)];
    let strategies: Vec<_> = strategies
        .iter()
        .filter(|(_, used)| *used)
        .map(|(name, _)| *name)
        .collect();
    if !strategies.is_empty() {
        let key = "x-kubernetes-patch-strategy".to_owned();
        node.insert(key, strategies.join(",").into());
    }
    if let Some(key) = &patch.merge_key {
        node.insert(
            "x-kubernetes-patch-merge-key".to_owned(),
            key.as_str().into(),
        );
    }
}

#[cfg(test)]
mod tests;
