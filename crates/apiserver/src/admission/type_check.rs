//! The status of a ValidatingAdmissionPolicy: what its expressions get wrong about the kinds it is about.

use std::sync::Arc;

use bellwether_admission::policy::warnings;
use bellwether_cel::DeclType;
use bellwether_schema::declared_type;
use serde_json::{Value, json};

use crate::context::RequestContext;
use crate::resource::Resource;

/// The most kinds that expressions are checked against.
const MOST_KINDS: usize = 10;

/// Writes the status of a policy that is about to be stored, unless it has it for this generation.
pub(super) fn check(cx: &RequestContext, policy: &mut Value) {
    let generation = policy["metadata"]["generation"].clone();
    if !generation.is_null() && policy["status"]["observedGeneration"] == generation {
        return;
    }
    let spec = &policy["spec"];
    let resources = cx.cluster.resources();
    let find = |api_version: &str, kind: &str| {
        let mut all = resources.iter();
        all.find(|it| *it.api_version == *api_version && *it.kind == *kind)
            .cloned()
    };
    let metadata = find("v1", "ConfigMap").and_then(|it| field(declare(&it)?, "metadata"));
    let kinds = named_kinds(cx, spec);
    let kinds: Vec<(String, DeclType)> = kinds
        .iter()
        .filter_map(|resource| {
            let name = format!("{}, Kind={}", group_version(resource), resource.kind);
            Some((name, with_metadata(declare(resource)?, metadata.as_ref())))
        })
        .collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let params = &spec["paramKind"];
    let params = find(&text(&params["apiVersion"]), &text(&params["kind"]));
    let params = params.and_then(|it| Some(with_metadata(declare(&it)?, metadata.as_ref())));
    let found = warnings(spec, &kinds, params.as_ref());
    let mut status = json!({"observedGeneration": generation, "typeChecking": {}});
    if !found.is_empty() {
        status["typeChecking"]["expressionWarnings"] = found.into();
    }
    policy["status"] = status;
}

/// The kinds that the rules of a policy name, without wildcards.
fn named_kinds(cx: &RequestContext, spec: &Value) -> Vec<Arc<Resource>> {
    let resources = cx.cluster.resources();
    let mut found: Vec<Arc<Resource>> = Vec::new();
    let rules = spec["matchConstraints"]["resourceRules"].as_array();
    for rule in rules.into_iter().flatten() {
        let texts = |field: &str| -> Vec<&str> {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        let plurals = texts("resources");
        if [&groups, &versions, &plurals]
            .iter()
            .any(|texts| texts.iter().any(|text| text.contains('*')))
        {
            continue;
        }
        let is_named = |it: &&Arc<Resource>| {
            groups.contains(&&*it.group)
                && versions.contains(&&*it.version)
                && plurals.contains(&&*it.plural)
        };
        for resource in resources.iter().filter(is_named) {
            let is_known = found.iter().any(|it| Arc::ptr_eq(it, resource));
            if !is_known && found.len() < MOST_KINDS {
                found.push(resource.clone());
            }
        }
    }
    let order = |it: &Arc<Resource>| (it.group.clone(), it.version.clone(), it.kind.clone());
    found.sort_by_key(order);
    found
}

/// Group and version as Go prints them, also for the core group.
fn group_version(resource: &Resource) -> String {
    format!("{}/{}", resource.group, resource.version)
}

fn declare(resource: &Resource) -> Option<DeclType> {
    declared_type(&resource.schema(), resource.is_custom())
}

fn field(decl: DeclType, name: &str) -> Option<DeclType> {
    match decl {
        DeclType::Object(mut object) => object.fields.remove(name),
        _ => None,
    }
}

/// What is declared about an object whose metadata has all the fields that every object has.
fn with_metadata(mut decl: DeclType, metadata: Option<&DeclType>) -> DeclType {
    if let (DeclType::Object(object), Some(metadata)) = (&mut decl, metadata) {
        object
            .fields
            .insert("metadata".to_owned(), metadata.clone());
    }
    decl
}
