//! Hub templates of a policy, resolved for one cluster.

use std::collections::BTreeMap;

use bellwether_api::policy::PolicyTemplate;
use bellwether_api::policy::names::annotation;
use bellwether_template::World;
use serde_json::{Value, json};

use super::Blueprint;
use crate::template::{
    self, Cluster, Context, HubContext, Keys, PolicyMetadata, Question, Request, Restriction, Side,
    Source,
};

/// Functions that encrypt what they return.
const ENCRYPTING: [&str; 3] = ["fromSecret", "copySecretData", "protect"];

/// The templates of a policy for one cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HubTemplates {
    /// The templates, with values instead of hub templates.
    pub templates: Vec<PolicyTemplate>,
    /// The initialisation vector, if something is encrypted.
    pub vector: Option<String>,
    /// The same with encrypted values as they would be if keys were never rotated; nothing if they are the same.
    pub identity: Option<Vec<PolicyTemplate>>,
    /// Why the first template without a value has none. It says so itself, and those behind it stay as they are.
    pub error: Option<String>,
}

/// What came of a resolution.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// It ended.
    Done(HubTemplates),
    /// What has to be known first.
    Needs(Vec<Question>),
}

/// True if a policy has hub templates to resolve.
pub fn has_hub_templates(blueprint: &Blueprint) -> bool {
    !is_disabled(&blueprint.root_annotations) && blueprint.templates().iter().any(has_template)
}

/// True if hub templates of a policy encrypt something.
pub fn needs_keys(blueprint: &Blueprint) -> bool {
    let texts = blueprint.templates().iter().filter(|it| has_template(it));
    texts
        .map(|template| template.object_definition.to_string())
        .any(|text| ENCRYPTING.iter().any(|function| text.contains(function)))
}

fn has_template(template: &PolicyTemplate) -> bool {
    let definition = &template.object_definition;
    let own = definition["metadata"]["annotations"][annotation::DISABLE_TEMPLATES].as_str();
    own != Some("true") && Side::Hub.has_template(&definition.to_string())
}

fn is_disabled(annotations: &BTreeMap<String, String>) -> bool {
    let value = annotations.get(annotation::DISABLE_TEMPLATES);
    value.is_some_and(|value| value == "true")
}

/// The keys that hub templates encrypt with for one cluster.
#[derive(Debug, Clone)]
pub struct ClusterKeys {
    /// The present key, and the one before it.
    pub present: Keys,
    /// The initialisation vector in base64.
    pub vector: String,
    /// The key that tells versions apart, where it is not the present one: a new key is no new version.
    pub identity: Option<Keys>,
}

/// Resolves the hub templates of a policy for a cluster.
pub fn resolve(
    blueprint: &Blueprint,
    cluster: &str,
    hub: &dyn Cluster,
    keys: Option<&ClusterKeys>,
    world: &World<'_>,
) -> Resolved {
    let encrypted = |key: &Keys, keys: &ClusterKeys| {
        let keys = (key.clone(), keys.vector.clone());
        resolve_with(blueprint, cluster, hub, Some(&keys), world)
    };
    let Some(keys) = keys else {
        return resolve_with(blueprint, cluster, hub, None, world);
    };
    let mut done = match encrypted(&keys.present, keys) {
        Resolved::Done(done) => done,
        needs @ Resolved::Needs(_) => return needs,
    };
    if let Some(identity) = &keys.identity
        && let Resolved::Done(other) = encrypted(identity, keys)
    {
        done.identity = Some(other.templates);
    }
    Resolved::Done(done)
}

fn resolve_with(
    blueprint: &Blueprint,
    cluster: &str,
    hub: &dyn Cluster,
    keys: Option<&(Keys, String)>,
    world: &World<'_>,
) -> Resolved {
    let mut done = HubTemplates {
        templates: blueprint.templates().to_vec(),
        ..HubTemplates::default()
    };
    for template in &mut done.templates {
        if !has_template(template) {
            continue;
        }
        let definition = std::mem::take(&mut template.object_definition);
        let request = request(blueprint, cluster, definition.clone(), keys);
        let resolution = match template::resolve(&request, hub, world) {
            template::Resolved::Needs(questions) => return Resolved::Needs(questions),
            template::Resolved::Done(resolution) => resolution,
        };
        match resolution.value {
            Ok(value) => {
                template.object_definition = value;
                let text = definition.to_string();
                if let Some((_, vector)) = keys
                    && ENCRYPTING.iter().any(|function| text.contains(function))
                {
                    annotate(
                        &mut template.object_definition,
                        annotation::ENCRYPTION_IV,
                        vector,
                    );
                    done.vector = Some(vector.clone());
                }
            }
            Err(error) => {
                let error = error.to_string();
                template.object_definition = definition;
                annotate(
                    &mut template.object_definition,
                    annotation::HUB_TEMPLATES_ERROR,
                    &error,
                );
                done.error = Some(error);
                break;
            }
        }
    }
    Resolved::Done(done)
}

/// Returns the templates as they are, if nothing can be looked up for them: the first hub template says why.
pub fn unresolved(blueprint: &Blueprint, why: &str) -> HubTemplates {
    let mut templates = blueprint.templates().to_vec();
    if let Some(first) = templates.iter_mut().find(|it| has_template(it)) {
        annotate(
            &mut first.object_definition,
            annotation::HUB_TEMPLATES_ERROR,
            why,
        );
    }
    HubTemplates {
        templates,
        error: Some(why.to_owned()),
        ..HubTemplates::default()
    }
}

fn request(
    blueprint: &Blueprint,
    cluster: &str,
    definition: Value,
    keys: Option<&(Keys, String)>,
) -> Request {
    let policy = PolicyMetadata {
        name: blueprint.name.clone(),
        namespace: blueprint.namespace.clone(),
        labels: blueprint.root_labels.clone(),
        annotations: blueprint.root_annotations.clone(),
    };
    let restriction = Restriction {
        namespace: blueprint.namespace.clone(),
        cluster: cluster.to_owned(),
    };
    Request {
        context: Context::Hub(HubContext {
            managed_cluster_name: cluster.to_owned(),
            policy_metadata: policy,
        }),
        source: Source::Definition(definition),
        restriction: blueprint.service_account().is_none().then_some(restriction),
        encrypt: keys.map(|(keys, _)| keys.clone()),
        decrypt: None,
        denied: Vec::new(),
    }
}

fn annotate(definition: &mut Value, key: &str, value: &str) {
    // What a template was resolved to may be anything.
    let is_object = |value: &Value| value.is_object() || value.is_null();
    if !definition.is_object() || !is_object(&definition["metadata"]) {
        return;
    }
    let metadata = &mut definition["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][key] = json!(value);
}
