//! Schemas of built-in kinds, built at first use and shared from then on.
//!
//! Names, types and prose come from `k8s-openapi`'s `JsonSchema` implementations, the rest from
//! [`crate::facts`]. Building one kind takes about a millisecond, and most clusters use a dozen, so
//! nothing is built in advance. Types that occur in several kinds are converted once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use bellwether_schema::{ListType, MapType, PatchStrategy, Schema, Type};
use k8s_openapi::api::{authentication, autoscaling, core, policy};
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::Resource;
use crate::facts::{self, FieldFacts, ListFact, Presence};

/// OpenAPI name of quantities such as `500m`.
pub(crate) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
/// OpenAPI name of numbers or percentages.
pub(crate) const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
/// OpenAPI name of times with a precision of seconds.
pub(crate) const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
/// OpenAPI name of times with a precision of microseconds.
pub(crate) const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
/// OpenAPI name of any JSON object.
pub(crate) const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Last names of types that hold arbitrary JSON, or that contain themselves.
const OPAQUE: &[&str] = &[
    "FieldsV1",
    "JSON",
    "JSONSchemaProps",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "RawExtension",
];

type Types = HashMap<String, Arc<Schema>>;

static TYPES: LazyLock<RwLock<Types>> = LazyLock::new(RwLock::default);

/// The schema of one object of the resource.
pub(crate) fn schema(resource: &Resource) -> Arc<Schema> {
    cached_or_built((resource.type_name)().as_ref(), resource.schema)
}

/// The schema of a kind that is no resource of its own, by its OpenAPI name: what subresources
/// take (`io.k8s.api.autoscaling.v1.Scale`, `io.k8s.api.policy.v1.Eviction`,
/// `io.k8s.api.authentication.v1.TokenRequest`) and the common
/// `io.k8s.apimachinery.pkg.apis.meta.v1.{DeleteOptions,Status,ListMeta,ObjectMeta}`.
pub fn type_schema(name: &str) -> Option<Arc<Schema>> {
    let build = match name {
        "io.k8s.api.autoscaling.v1.Scale" => autoscaling::v1::Scale::json_schema,
        "io.k8s.api.policy.v1.Eviction" => policy::v1::Eviction::json_schema,
        "io.k8s.api.authentication.v1.TokenRequest" => {
            authentication::v1::TokenRequest::json_schema
        }
        "io.k8s.api.core.v1.Binding" => core::v1::Binding::json_schema,
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" => {
            meta::v1::DeleteOptions::json_schema
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status" => meta::v1::Status::json_schema,
        "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta" => meta::v1::ListMeta::json_schema,
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" => meta::v1::ObjectMeta::json_schema,
        _ => return None,
    };
    Some(cached_or_built(name, build))
}

fn cached_or_built(name: &str, build: fn(&mut SchemaGenerator) -> schemars::Schema) -> Arc<Schema> {
    // A poisoned lock still guards a consistent map: entries are only ever added, whole.
    let known = TYPES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.get(name) {
        return Arc::clone(schema);
    }
    drop(known);
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let root = build(&mut generator).to_value();
    let mut definitions = generator.take_definitions(false);
    definitions.insert(name.to_owned(), root);
    let mut types = TYPES.write().unwrap_or_else(PoisonError::into_inner);
    let mut builder = Builder {
        definitions,
        types: &mut types,
        open: Vec::new(),
    };
    builder.named(name)
}

/// Converts the output of one generator.
struct Builder<'a> {
    definitions: serde_json::Map<String, Value>,
    types: &'a mut Types,
    /// Names of the types that are being converted, outermost first: a type that contains itself
    /// ends here instead of in an endless recursion.
    open: Vec<String>,
}

impl Builder<'_> {
    fn named(&mut self, name: &str) -> Arc<Schema> {
        if let Some(schema) = self.types.get(name) {
            return Arc::clone(schema);
        }
        let definition = self.definitions.remove(name).unwrap_or_default();
        let last = name.rsplit('.').next().unwrap_or(name);
        let mut schema = if OPAQUE.contains(&last) || self.open.iter().any(|open| open == name) {
            opaque(&definition)
        } else {
            self.open.push(name.to_owned());
            let schema = self.convert(&definition, name);
            self.open.pop();
            schema
        };
        schema.type_name = Some(Arc::from(name));
        if name == INT_OR_STRING {
            schema.format = Some("int-or-string".to_owned());
        }
        let schema = Arc::new(schema);
        self.types.insert(name.to_owned(), Arc::clone(&schema));
        schema
    }

    fn child(&mut self, definition: &Value) -> Arc<Schema> {
        let Some(reference) = definition.get("$ref").and_then(Value::as_str) else {
            return Arc::new(self.convert(definition, ""));
        };
        let name = reference.trim_start_matches("#/$defs/");
        let shared = self.named(name);
        match description(definition) {
            // What the field says of itself is more telling than what its type says.
            Some(own) if shared.description.as_ref() != Some(&own) => Arc::new(Schema {
                description: Some(own),
                ..(*shared).clone()
            }),
            _ => shared,
        }
    }

    fn convert(&mut self, definition: &Value, type_name: &str) -> Schema {
        let facts = facts::of(type_name);
        let mut properties = BTreeMap::new();
        if let Some(fields) = definition.get("properties").and_then(Value::as_object) {
            for (name, field) in fields {
                let child = self.child(field);
                let known = facts.and_then(|facts| facts.field(name));
                properties.insert(
                    name.clone(),
                    known.map_or(child.clone(), |known| apply(&child, known)),
                );
            }
        }
        let additional_properties = definition
            .get("additionalProperties")
            .filter(|values| values.is_object())
            .map(|values| self.child(values));
        let items = definition.get("items").map(|items| self.child(items));
        let int_or_string = definition
            .get("x-kubernetes-int-or-string")
            .is_some_and(|flag| flag == true);
        Schema {
            kind: kind(definition),
            description: description(definition),
            format: text(definition, "format"),
            required: required(definition, type_name, properties.contains_key("kind")),
            properties,
            additional_properties,
            items,
            int_or_string,
            map_type: map_type(facts.is_some_and(|facts| facts.atomic)),
            ..Schema::default()
        }
    }
}

/// A field with what is known about it beyond its type.
fn apply(schema: &Arc<Schema>, facts: &FieldFacts) -> Arc<Schema> {
    let plain = facts.list == ListFact::Atomic
        && !facts.atomic
        && facts.patch.is_none()
        && facts.default.is_none()
        && facts.presence != Presence::Object;
    if plain {
        return Arc::clone(schema);
    }
    let mut schema = (**schema).clone();
    schema.list_type = match facts.list {
        ListFact::Atomic => ListType::Atomic,
        ListFact::Set => ListType::Set,
        ListFact::Keys(keys) => ListType::Map(keys.split(',').map(str::to_owned).collect()),
    };
    if facts.atomic {
        schema.map_type = MapType::Atomic;
    }
    schema.patch = facts.patch.map(|patch| PatchStrategy {
        merge: patch.merge,
        retain_keys: patch.retain_keys,
        merge_key: patch.key.map(str::to_owned),
    });
    schema.default = facts.default.map(|text| match schema.kind {
        Some(Type::Integer) => text.parse::<i64>().map_or(Value::Null, Value::from),
        _ => Value::from(text),
    });
    if facts.presence == Presence::Object {
        // As Kubernetes publishes it; it also says that the object is nobody's doing.
        schema.default = Some(json!({}));
    }
    Arc::new(schema)
}

fn opaque(definition: &Value) -> Schema {
    Schema {
        kind: kind(definition).filter(|kind| *kind == Type::Object),
        description: description(definition),
        preserve_unknown_fields: true,
        ..Schema::default()
    }
}

fn kind(definition: &Value) -> Option<Type> {
    match definition.get("type")?.as_str()? {
        "object" => Some(Type::Object),
        "array" => Some(Type::Array),
        "string" => Some(Type::String),
        "integer" => Some(Type::Integer),
        "number" => Some(Type::Number),
        "boolean" => Some(Type::Boolean),
        _ => None,
    }
}

fn map_type(atomic: bool) -> MapType {
    if atomic {
        MapType::Atomic
    } else {
        MapType::Granular
    }
}

fn description(definition: &Value) -> Option<Arc<str>> {
    definition.get("description")?.as_str().map(Arc::from)
}

fn text(definition: &Value, key: &str) -> Option<String> {
    definition.get(key)?.as_str().map(str::to_owned)
}

/// Fields that are required in Rust, but not on the wire.
const OPTIONAL: &[(&str, &str)] = &[
    ("ConfigMapEnvSource", "name"),
    ("ConfigMapKeySelector", "name"),
    ("ConfigMapProjection", "name"),
    ("ConfigMapVolumeSource", "name"),
    ("LocalObjectReference", "name"),
    ("PodFailurePolicyOnPodConditionsPattern", "status"),
    ("SecretEnvSource", "name"),
    ("SecretKeySelector", "name"),
    ("SecretProjection", "name"),
];

/// Required fields; `metadata` of a whole object is one in Rust, but not on the wire.
fn required(definition: &Value, type_name: &str, is_object: bool) -> Vec<String> {
    let last = type_name.rsplit('.').next().unwrap_or(type_name);
    let names = definition.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names
        .filter(|name| !(is_object && *name == "metadata"))
        .filter(|name| !OPTIONAL.contains(&(last, *name)))
        .map(str::to_owned)
        .collect()
}
