//! The templates of a policy on a cluster: which objects they become there, and what is wrong with them.

mod gatekeeper;

use std::collections::BTreeMap;

use bellwether_api::Kind as _;
use bellwether_api::policy::names::{annotation, finalizer, label};
use bellwether_api::policy::{
    CertificatePolicy, ConfigurationPolicy, GROUP, OperatorPolicy, Policy, PolicyDependency,
    PolicyTemplate,
};
use serde_json::{Map, Value, json};

pub use gatekeeper::{Gatekeeper, audit_of, state_of};

/// What a template says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The name that it is reported under: its own, or its place in the list.
    pub name: String,
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// What the object is defined as.
    pub definition: Value,
    /// What has to be in a state of compliance first.
    pub dependencies: Vec<Dependency>,
    /// Reports Compliant while it waits.
    pub ignores_pending: bool,
}

/// An object that a template waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for kinds without one.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The state that it has to be in.
    pub compliance: String,
}

/// A template, or what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    /// It can be an object.
    Target(Box<Target>),
    /// It cannot.
    Error {
        /// The name that it is reported under.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl Parsed {
    /// The name that it is reported under.
    pub fn name(&self) -> &str {
        match self {
            Self::Target(target) => &target.name,
            Self::Error { name, .. } => name,
        }
    }
}

/// Reads the templates of a policy. Templates are in the namespace of the cluster.
pub fn parse(policy: &Policy, namespace: &str) -> Vec<Parsed> {
    let templates = &policy.spec.policy_templates;
    let own_name = |template: &PolicyTemplate| {
        let name = template.object_definition["metadata"]["name"].as_str();
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in templates.iter().filter_map(own_name) {
        *counts.entry(name).or_default() += 1;
    }
    let duplicate = counts.iter().find(|(_, count)| **count > 1);
    if let Some((name, _)) = duplicate {
        let error = |template: &PolicyTemplate| Parsed::Error {
            name: own_name(template).unwrap_or_else(|| name.clone()),
            message: "All policy-template names must be unique within a policy".to_owned(),
        };
        return templates.iter().map(error).collect();
    }
    let parsed = templates.iter().enumerate().map(|(index, template)| {
        let name = own_name(template);
        let shown = name.clone().unwrap_or_else(|| format!("template-{index}"));
        let error = |message| Parsed::Error {
            name: shown.clone(),
            message,
        };
        let definition = &template.object_definition;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if text(&definition["kind"]).is_empty() {
            return Parsed::Error {
                name: format!("template-{index}"),
                message: format!(
                    "Failed to decode policy template with err: Object 'Kind' is missing in '{definition}'"
                ),
            };
        }
        let dependencies = match dependencies(policy, template, namespace) {
            Ok(dependencies) => dependencies,
            Err(message) => return error(message),
        };
        if name.is_none() {
            return error(format!(
                "Failed to parse or get name from policy template at index {index}"
            ));
        }
        Parsed::Target(Box::new(Target {
            name: shown,
            api_version: text(&definition["apiVersion"]),
            kind: text(&definition["kind"]),
            definition: definition.clone(),
            dependencies,
            ignores_pending: template.ignore_pending == Some(true),
        }))
    });
    parsed.collect()
}

/// What a template waits for: what the policy says, and what the template adds.
fn dependencies(
    policy: &Policy,
    template: &PolicyTemplate,
    namespace: &str,
) -> Result<Vec<Dependency>, String> {
    let mut found: Vec<Dependency> = Vec::new();
    let all = policy
        .spec
        .dependencies
        .iter()
        .chain(&template.extra_dependencies);
    for dependency in all {
        let new = dependency_of(dependency, namespace);
        let same = found.iter().find(|known| {
            (
                &known.api_version,
                &known.kind,
                &known.namespace,
                &known.name,
            ) == (&new.api_version, &new.kind, &new.namespace, &new.name)
        });
        match same {
            None => found.push(new),
            Some(known) if known.compliance == new.compliance => {}
            Some(_) => {
                return Err(format!(
                    "Failed to decode policy template with err: dependency on {} has conflicting compliance states",
                    new.name
                ));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn dependency_of(dependency: &PolicyDependency, namespace: &str) -> Dependency {
    let group = dependency.api_version.split_once('/');
    let is_policy =
        group.is_some_and(|(group, _)| group == GROUP) && dependency.kind.ends_with("Policy");
    let own = dependency.namespace.clone().unwrap_or_default();
    Dependency {
        api_version: dependency.api_version.clone(),
        kind: dependency.kind.clone(),
        // Policies and their templates are in the namespace of the cluster, whatever is said.
        namespace: if is_policy { namespace.to_owned() } else { own },
        name: dependency.name.clone(),
        compliance: dependency.compliance.as_str().to_owned(),
    }
}

/// What is reported while dependencies are not met; nothing if they are. `state` is what is true of
/// each; empty if nothing is known.
pub fn pending(target: &Target, state: impl Fn(&Dependency) -> String) -> Option<String> {
    let open: Vec<String> = target
        .dependencies
        .iter()
        .filter(|dependency| state(dependency) != dependency.compliance)
        .map(|dependency| format!("{} {}", dependency.kind, dependency.name))
        .collect();
    let count = match open.len() {
        0 => return None,
        1 => "1 is".to_owned(),
        several => format!("{several} are"),
    };
    let list = open.join(", ");
    let message = format!("Dependencies were not satisfied: {count} still pending ({list})");
    Some(if target.ignores_pending {
        format!("Compliant; {message} but ignorePending is true")
    } else {
        format!("Pending; {message}")
    })
}

/// What is reported of a template that cannot be an object.
pub fn template_error(message: &str) -> String {
    format!("NonCompliant; template-error; {message}")
}

/// What is reported where a kind is not served.
pub fn not_served(api_version: &str, kind: &str) -> String {
    let advice = match Gatekeeper::of(api_version) {
        Some(Gatekeeper::Template) => "Gatekeeper is installed",
        Some(Gatekeeper::Constraint) => "the required ConstraintTemplate has been deployed",
        None => "you have the CRD deployed",
    };
    format!(
        "Mapping not found, check if {advice}: the resource version was not found: no matching kind was found: {}",
        shown_kind(api_version, kind)
    )
}

/// What is reported where a kind is served, but is not one that policies can have.
pub fn not_supported(api_version: &str, kind: &str) -> String {
    format!(
        "policy-template kind is not supported: {}",
        shown_kind(api_version, kind)
    )
}

/// Group, version and kind as Go prints them.
fn shown_kind(api_version: &str, kind: &str) -> String {
    if api_version.contains('/') {
        format!("{api_version}, Kind={kind}")
    } else {
        format!("/{api_version}, Kind={kind}")
    }
}

/// The error of the hub's templates, if they have no value.
pub fn hub_error(target: &Target) -> Option<&str> {
    let annotations = &target.definition["metadata"]["annotations"];
    annotations[annotation::HUB_TEMPLATES_ERROR]
        .as_str()
        .filter(|text| !text.is_empty())
}

/// The object of a template. `policy` is the policy on the cluster. An object without a namespace cannot have an
/// owner in one: it belongs to the policy by its label.
pub fn object(target: &Target, policy: &Policy, namespace: &str, is_namespaced: bool) -> Value {
    let mut object = target.definition.clone();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let policy_name = policy.metadata.name.as_deref().unwrap_or_default();
    let own_labels = policy.metadata.labels.as_ref();
    let cluster = own_labels
        .and_then(|labels| labels.get(label::CLUSTER_NAME))
        .map_or(namespace, String::as_str);
    if is_namespaced {
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": Policy::NAMES.api_version(),
            "kind": Policy::NAMES.kind,
            "name": policy_name,
            "uid": policy.metadata.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
    } else if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
        metadata.remove("ownerReferences");
    }
    let labels = &mut object["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[label::OLD_CLUSTER_NAME] = json!(cluster);
    labels[label::CLUSTER_NAME] = json!(cluster);
    labels[label::OLD_CLUSTER_NAMESPACE] = json!(namespace);
    labels[label::CLUSTER_NAMESPACE] = json!(namespace);
    labels[label::POLICY] = json!(policy_name);
    remediate(&mut object, policy);
    object
}

/// Copies the remediation action of the policy, but to templates that only ever inform. Constraints have a word of
/// their own for it, ConstraintTemplates none.
fn remediate(object: &mut Value, policy: &Policy) {
    if let Some(gatekeeper) = Gatekeeper::of(object["apiVersion"].as_str().unwrap_or_default()) {
        let action = policy.spec.remediation_action.as_ref();
        let action = action.and_then(|action| gatekeeper::enforcement(action.as_str()));
        if let Some(action) = action.filter(|_| gatekeeper == Gatekeeper::Constraint)
            && object["spec"].is_object()
        {
            object["spec"]["enforcementAction"] = json!(action);
        }
        return;
    }
    let own = object["spec"]["remediationAction"]
        .as_str()
        .unwrap_or_default();
    let of_policy = policy.spec.remediation_action.as_ref();
    let of_policy = of_policy.filter(|action| !action.is_empty());
    let action = if own.eq_ignore_ascii_case(crate::propagation::INFORM_ONLY) {
        Some("inform".to_owned())
    } else {
        of_policy.map(|action| action.as_str().to_owned())
    };
    if let Some(action) = action
        && object["spec"].is_object()
    {
        object["spec"]["remediationAction"] = json!(action);
    }
}

/// What has to be done about the object of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is as it should be.
    None,
    /// It does not exist.
    Create,
    /// It becomes this.
    Update(Box<Value>),
    /// It belongs to somebody else.
    Taken(String),
}

/// Compares the object of a template with the live one.
pub fn change(desired: &Value, live: Option<&Value>) -> Change {
    let Some(live) = live else {
        return Change::Create;
    };
    let own = &desired["metadata"]["labels"][label::POLICY];
    let owners = live["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let owner = if desired["metadata"].get("ownerReferences").is_some() {
        let owner = owners.find(|owner| owner["kind"] == Policy::NAMES.kind);
        owner.map(|owner| &owner["name"])
    } else {
        live["metadata"]["labels"].get(label::POLICY)
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&desired["kind"]), text(&desired["metadata"]["name"]));
    let taken = |by: String| {
        Change::Taken(format!(
            "Template name must be unique. Policy template with kind: {kind} name: {name} already exists {by}"
        ))
    };
    match owner {
        None => return taken("outside of a Policy".to_owned()),
        Some(owner) if owner != own => return taken(format!("in policy {}", text(owner))),
        Some(_) => {}
    }
    let is_subset = |field: &str| {
        let desired = desired["metadata"][field].as_object();
        let mut desired = desired.into_iter().flatten();
        desired.all(|(key, value)| live["metadata"][field].get(key) == Some(value))
    };
    let is_same = is_same_spec(&desired["spec"], &live["spec"])
        && is_subset("labels")
        && is_subset("annotations")
        && desired["metadata"].get("ownerReferences") == live["metadata"].get("ownerReferences");
    if is_same {
        return Change::None;
    }
    let mut updated = live.clone();
    updated["spec"] = desired["spec"].clone();
    for field in ["labels", "annotations", "ownerReferences"] {
        match desired["metadata"].get(field) {
            Some(value) => updated["metadata"][field] = value.clone(),
            None => {
                if let Some(metadata) = updated["metadata"].as_object_mut() {
                    metadata.remove(field);
                }
            }
        }
    }
    Change::Update(Box::new(updated))
}

/// Whether specs are the same, besides what the server fills in.
fn is_same_spec(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let filled = |key: &str, value: &Value| is_filled_in(key, value);
            desired.iter().all(|(key, value)| match live.get(key) {
                Some(live) => is_same_spec(value, live),
                None => value.is_null(),
            }) && live
                .iter()
                .all(|(key, value)| desired.contains_key(key) || filled(key, value))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len()
                && std::iter::zip(desired, live).all(|(desired, live)| is_same_spec(desired, live))
        }
        _ => desired == live,
    }
}

/// Whether a server fills a field of a template in with this value.
fn is_filled_in(key: &str, value: &Value) -> bool {
    match key {
        "pruneObjectBehavior" | "recreateOption" => value == "None",
        "terminatingInclusion" => value == "Default",
        "remediationAction" => value == "inform",
        "complianceConfig" | "removalBehavior" => true,
        _ => false,
    }
}

/// What a refused write of a template is reported with.
pub fn refused(is_new: bool, name: &str, error: &str) -> String {
    let both = "must validate one and only one schema (oneOf). Found 2 valid alternatives";
    let mut text = error.to_owned();
    if error.contains(both)
        && let Some((before, _)) = error.split_once("is invalid: ")
    {
        text = format!(
            "{before}is invalid: spec may only contain one of object-templates and object-templates-raw"
        );
    }
    if is_new {
        format!("Failed to create policy template: {text}")
    } else {
        format!("Failed to update policy template {name}: {text}")
    }
}

/// Group and version, and kind, of each template.
pub fn kinds(policy: &Policy) -> impl Iterator<Item = (&str, &str)> {
    let templates = policy.spec.policy_templates.iter();
    templates.map(|template| {
        let text = |field: &str| template.object_definition[field].as_str();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        (api_version.unwrap_or_default(), kind.unwrap_or_default())
    })
}

/// True if a kind of template is one of the framework's own, which are in a namespace.
pub fn is_own_kind((api_version, kind): (&str, &str)) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let own = [
        ConfigurationPolicy::NAMES,
        CertificatePolicy::NAMES,
        OperatorPolicy::NAMES,
    ];
    group == GROUP && own.iter().any(|names| names.kind == kind)
}

/// True if a policy has templates of kinds that others define.
pub fn has_other_kinds(policy: &Policy) -> bool {
    kinds(policy).any(|kind| !is_own_kind(kind) && Gatekeeper::of(kind.0).is_none())
}

/// The finalizers of a copy: those that it has, and one more if templates have to be deleted before it, because they
/// have no namespace: nobody deletes them but who created them.
fn finalizers(live: Option<&Value>, has_cluster_scoped: bool) -> Vec<Value> {
    let known = live.and_then(|live| live["metadata"]["finalizers"].as_array());
    let mut all: Vec<Value> = known.cloned().unwrap_or_default();
    if has_cluster_scoped && !all.iter().any(|it| it == finalizer::CLEANUP_CLUSTER_SCOPED) {
        all.push(json!(finalizer::CLEANUP_CLUSTER_SCOPED));
    }
    all
}

/// The copy of a replica on its cluster; nothing if the live one is the same. Labels are set once.
/// `has_cluster_scoped` says whether templates of it have no namespace.
pub fn copied(
    replica: &Policy,
    live: Option<&Value>,
    namespace: &str,
    has_cluster_scoped: bool,
) -> Option<Value> {
    let text = serde_json::to_value(replica).unwrap_or(Value::Null);
    let finalizers = finalizers(live, has_cluster_scoped);
    match live {
        None => {
            let mut metadata = Map::new();
            metadata.insert("name".to_owned(), text["metadata"]["name"].clone());
            metadata.insert("namespace".to_owned(), json!(namespace));
            for field in ["labels", "annotations"] {
                if let Some(value) = text["metadata"].get(field) {
                    metadata.insert(field.to_owned(), value.clone());
                }
            }
            if !finalizers.is_empty() {
                metadata.insert("finalizers".to_owned(), json!(finalizers));
            }
            Some(json!({
                "apiVersion": text["apiVersion"],
                "kind": text["kind"],
                "metadata": metadata,
                "spec": text["spec"],
            }))
        }
        Some(live) => {
            let is_same = live["spec"] == text["spec"]
                && live["metadata"]["annotations"] == text["metadata"]["annotations"]
                && live["metadata"]["finalizers"]
                    .as_array()
                    .map_or(0, Vec::len)
                    == finalizers.len();
            if is_same {
                return None;
            }
            let mut updated = live.clone();
            if !finalizers.is_empty() {
                updated["metadata"]["finalizers"] = json!(finalizers);
            }
            updated["spec"] = text["spec"].clone();
            match text["metadata"].get("annotations") {
                Some(annotations) => updated["metadata"]["annotations"] = annotations.clone(),
                None => {
                    if let Some(metadata) = updated["metadata"].as_object_mut() {
                        metadata.remove("annotations");
                    }
                }
            }
            Some(updated)
        }
    }
}

#[cfg(test)]
mod tests;
