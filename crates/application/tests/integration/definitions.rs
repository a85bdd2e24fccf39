//! What every parameter of the built-in components, traits and policies changes.
//!
//! A definition is rendered with what has to be given, with each parameter alone, with all at once, and with values of the
//! wrong type. What comes out is compared with `testdata/definitions`; `BELLWETHER_UPDATE_DEFINITIONS=1` writes it.

#![allow(
    clippy::disallowed_methods,
    reason = "the test reads and writes its files"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use bellwether_api::oam::Application;
use bellwether_application::appfile;
use bellwether_application::builtin;
use bellwether_application::catalog::Catalog;
use bellwether_application::definition::{Definition, DefinitionKind};
use bellwether_application::deliver::deliver;
use bellwether_application::document::parameters;
use bellwether_application::resource_policy::ResourcePolicies;
use bellwether_application::world::World;
use serde_json::{Value, json};

use crate::samples::Samples;

/// The component that is rendered, or that traits are of.
const COMPONENT: &str = "web";

fn kinds() -> [DefinitionKind; 3] {
    [
        DefinitionKind::Component,
        DefinitionKind::Trait,
        DefinitionKind::Policy,
    ]
}

/// The world of examples: the objects and the cluster that they name.
fn world() -> World {
    let settings = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default"},
        "data": {"currency": "EUR"},
    });
    let cluster = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "frankfurt",
            "namespace": "vela-system",
            "labels": {
                "cluster.core.oam.dev/cluster-credential-type": "X509Certificate",
                "region": "europe",
            },
        },
    });
    World::new(World::default().hub_version, vec![settings, cluster])
}

/// What an application is rendered to, or why it is not.
pub(crate) fn rendered(application: &Value) -> Result<Vec<Value>, String> {
    let application: Application =
        serde_json::from_value(application.clone()).map_err(|error| error.to_string())?;
    let (catalog, world) = (Catalog::default(), world());
    let appfile =
        appfile::parse(&application, &catalog, &world, 1).map_err(|error| error.message)?;
    ResourcePolicies::of_appfile(&appfile)?;
    let delivery = deliver(&appfile).map_err(|error| error.message)?;
    let components = delivery.components.into_iter();
    let manifests = components.flat_map(|component| component.manifests);
    let all = delivery.policies.into_iter().chain(manifests);
    Ok(all.map(|manifest| manifest.object).collect())
}

/// An application that uses a definition with these properties.
fn application(definition: &Definition, properties: &Value) -> Value {
    let name = &definition.type_name;
    let mut web = json!({
        "name": COMPONENT,
        "type": "webservice",
        "properties": {"image": "nginx", "ports": [{"port": 80}]},
    });
    let mut policies = json!([]);
    match definition.kind {
        DefinitionKind::Component => {
            web = json!({"name": COMPONENT, "type": name, "properties": properties});
        }
        DefinitionKind::Trait => web["traits"] = json!([{"type": name, "properties": properties}]),
        _ => policies = json!([{"name": "it", "type": name, "properties": properties}]),
    }
    json!({
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"components": [web], "policies": policies},
    })
}

/// Objects by their paths: every value of them on a line of its own.
fn lines(objects: &[Value]) -> Vec<String> {
    fn visit(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    visit(&format!("{path}.{name}"), field, found);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    visit(&format!("{path}[{index}]"), item, found);
                }
            }
            _ => found.push(format!("{path} = {value}")),
        }
    }
    let mut found = Vec::new();
    for object in objects {
        let mut object = object.clone();
        // Hashes change with every word of a definition.
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.remove("app.oam.dev/app-revision-hash");
        }
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let prefix = format!("{kind} {name}:");
        visit(&prefix, &object, &mut found);
    }
    found
}

/// The beginning of an error on one line.
fn shortened(error: &str) -> String {
    let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(160).collect()
}

/// Writes what a case comes to: all of it, or how it differs from the minimal case.
fn write_case(
    report: &mut String,
    title: &str,
    outcome: &Result<Vec<Value>, String>,
    minimal: Option<&[String]>,
) {
    let _ = writeln!(report, "{title}");
    match (outcome, minimal) {
        (Err(error), _) => {
            let _ = writeln!(report, "  error: {}", shortened(error));
        }
        (Ok(objects), None) => {
            for line in lines(objects) {
                let _ = writeln!(report, "  {line}");
            }
        }
        (Ok(objects), Some(minimal)) => {
            let now = lines(objects);
            for line in minimal.iter().filter(|line| !now.contains(line)) {
                let _ = writeln!(report, "  - {line}");
            }
            for line in now.iter().filter(|line| !minimal.contains(line)) {
                let _ = writeln!(report, "  + {line}");
            }
        }
    }
}

fn report(definition: &Definition) -> String {
    let all = parameters(definition);
    let samples = Samples::new(&definition.type_name, &all, COMPONENT);
    let run = |properties: &Value| rendered(&application(definition, properties));
    let mut report = String::new();
    let properties = samples.minimal();
    let minimal = run(&properties);
    write_case(
        &mut report,
        &format!("required: {properties}"),
        &minimal,
        None,
    );
    let known = minimal.ok().map(|objects| lines(&objects));
    let mut seen = vec![properties];
    for parameter in &all {
        let properties = samples.with(&parameter.path);
        if seen.contains(&properties) {
            let _ = writeln!(report, "{}: as above", parameter.path);
            continue;
        }
        seen.push(properties.clone());
        let title = format!("{}: {properties}", parameter.path);
        write_case(&mut report, &title, &run(&properties), known.as_deref());
    }
    let properties = samples.full();
    let title = format!("everything: {properties}");
    write_case(&mut report, &title, &run(&properties), known.as_deref());
    for parameter in &all {
        let properties = samples.with_wrong(&parameter.path);
        let title = format!("wrong: {}", parameter.path);
        write_case(&mut report, &title, &run(&properties), known.as_deref());
    }
    let nothing = run(&json!({}));
    write_case(&mut report, "nothing: {}", &nothing, known.as_deref());
    report
}

#[test]
fn parameters_of_definitions_change_what_they_should() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/definitions");
    let is_update = std::env::var_os("BELLWETHER_UPDATE_DEFINITIONS").is_some();
    let mut different = Vec::new();
    for source in builtin::sources().filter(|source| kinds().contains(&source.kind)) {
        let definition = builtin::find(source.kind, source.name).unwrap();
        let file = folder.join(format!("{}-{}.txt", source.kind.word(), source.name));
        let report = report(&definition);
        if is_update {
            fs::write(&file, &report).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != report {
            different.push(source.name);
        }
    }
    assert!(
        different.is_empty(),
        "{different:?} are rendered otherwise than testdata/definitions says; if that is right, \
         BELLWETHER_UPDATE_DEFINITIONS=1 writes it"
    );
}

#[test]
fn every_parameter_changes_what_is_rendered_or_is_checked() {
    let mut unread = Vec::new();
    // Policies say how objects are treated; charts are fetched, which nothing is here.
    for source in builtin::sources().filter(|source| {
        [DefinitionKind::Component, DefinitionKind::Trait].contains(&source.kind)
            && source.name != "helmchart"
    }) {
        let definition = builtin::find(source.kind, source.name).unwrap();
        let all = parameters(&definition);
        let samples = Samples::new(&definition.type_name, &all, COMPONENT);
        for parameter in &all {
            let right = rendered(&application(&definition, &samples.with(&parameter.path)));
            let wrong = rendered(&application(
                &definition,
                &samples.with_wrong(&parameter.path),
            ));
            if right == wrong {
                unread.push(format!("{} {}", source.name, parameter.path));
            }
        }
    }
    assert!(unread.is_empty(), "read nowhere: {unread:#?}");
}

#[test]
fn every_definition_is_described_with_its_parameters() {
    let mut silent = Vec::new();
    for source in builtin::sources().filter(|source| kinds().contains(&source.kind)) {
        let definition = builtin::find(source.kind, source.name).unwrap();
        for parameter in parameters(&definition) {
            if !parameter.path.ends_with('*') && parameter.usage.is_empty() {
                silent.push(format!("{} {}", source.name, parameter.path));
            }
        }
    }
    assert!(silent.is_empty(), "without +usage: {silent:#?}");
}

#[test]
fn every_definition_has_an_example_that_can_be_rendered() {
    for source in builtin::sources().filter(|source| kinds().contains(&source.kind)) {
        let example = source.example.unwrap_or_default();
        assert!(
            example.contains(&format!("type: {}", source.name)),
            "{}",
            source.name
        );
        let documents = bellwether_json::yaml::from_yaml(example).unwrap();
        let [application] = documents.as_slice() else {
            panic!("{}: one Application", source.name);
        };
        let outcome = rendered(application);
        match outcome {
            Ok(objects) => assert!(!objects.is_empty(), "{}", source.name),
            // Charts are fetched, which nothing is here.
            Err(error) => assert_eq!(source.name, "helmchart", "{error}"),
        }
    }
}
