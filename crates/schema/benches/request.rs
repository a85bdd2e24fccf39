//! What one write of a custom resource costs: decode, default, validate, run rules.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark may stop when its input is wrong"
)]

use std::sync::Arc;

use bellwether_schema::meta::Malformed;
use bellwether_schema::{Change, CompiledSchema, FieldError, FieldPath, parse};
use divan::Bencher;
use serde_json::{Map, Value, json};

fn main() {
    divan::main();
}

fn no_metadata_rules(_: &Map<String, Value>, _: &FieldPath<'_>) -> Vec<FieldError> {
    Vec::new()
}

fn kettle_schema() -> Value {
    let part = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"},
            "weight": {"type": "integer", "minimum": 0, "default": 1},
            "finish": {"type": "string", "enum": ["matt", "gloss"], "default": "matt"},
        },
        "x-kubernetes-validations": [{"rule": "self.weight < 100 || self.finish == 'matt'"}],
    });
    json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "nullable": true},
                "parts": {"type": "array", "items": part, "maxItems": 100,
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "x-kubernetes-validations": [
                {"rule": "self.size >= self.parts.size()"},
                {"rule": "self.size >= oldSelf.size", "message": "kettles do not shrink"},
            ],
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

fn kettle(parts: usize) -> Value {
    let parts: Vec<_> = (0..parts)
        .map(|n| json!({"name": format!("part-{n}"), "weight": n}))
        .collect();
    json!({
        "apiVersion": "kitchen.example/v1", "kind": "Kettle",
        "metadata": {"name": "k", "labels": {"app": "tea", "tier": "back"}},
        "spec": {"size": 50, "colour": "red", "labels": {"a": "b", "c": "d"}, "parts": parts, "typo": 1},
    })
}

fn compiled() -> CompiledSchema {
    CompiledSchema::compile(
        Arc::new(parse(&kettle_schema()).unwrap()),
        no_metadata_rules,
    )
}

const PARTS: [usize; 3] = [1, 10, 50];

#[divan::bench]
fn compile(bencher: Bencher) {
    let schema = Arc::new(parse(&kettle_schema()).unwrap());
    bencher.bench(|| CompiledSchema::compile(Arc::clone(&schema), no_metadata_rules));
}

#[divan::bench(args = PARTS)]
fn coerce_and_default(bencher: Bencher, parts: usize) {
    let compiled = compiled();
    let object = kettle(parts);
    bencher.with_inputs(|| object.clone()).bench_refs(|object| {
        let unknown = compiled.coerce(object, Malformed::Refuse);
        compiled.default(object).unwrap_or_default();
        unknown
    });
}

#[divan::bench(args = PARTS)]
fn validate_values(bencher: Bencher, parts: usize) {
    let (compiled, old) = (compiled(), ready(parts));
    let mut new = old.clone();
    new["spec"]["size"] = 51.into();
    bencher.bench(|| {
        compiled.validate_values(Change::Update {
            new: &new,
            old: &old,
        })
    });
}

#[divan::bench(args = PARTS)]
fn run_rules(bencher: Bencher, parts: usize) {
    let (compiled, old) = (compiled(), ready(parts));
    let mut new = old.clone();
    new["spec"]["size"] = 51.into();
    bencher.bench(|| {
        let mut errors = Vec::new();
        let finished = compiled.validate_rules(
            Change::Update {
                new: &new,
                old: &old,
            },
            &mut errors,
            bellwether_schema::RuleLimits::default(),
        );
        assert!(finished.is_ok() && errors.is_empty());
    });
}

/// An object as it is when it is validated.
fn ready(parts: usize) -> Value {
    let compiled = compiled();
    let mut object = kettle(parts);
    compiled.coerce(&mut object, Malformed::Refuse).unwrap();
    compiled.default(&mut object).unwrap_or_default();
    object
}
