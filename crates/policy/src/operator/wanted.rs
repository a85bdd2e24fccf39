//! What a policy wants of an operator: its Subscription and its OperatorGroup, completed from the catalog.

use bellwether_api::policy::OperatorPolicy;
use bellwether_api::policy::names::{annotation, operator as names};
use bellwether_json::name::dns_label_problems;
use bellwether_template::World;
use serde_json::{Map, Value, json};

use super::look::{GROUP, Look, NAMESPACE, PACKAGE, POLICY, SUBSCRIPTION, Stop, text};
use crate::template::{
    Context, ManagedContext, Request, Resolved, Side, Source, resolve as resolve_template,
};

/// Fields of a Subscription that a policy may set.
const SUBSCRIPTION_FIELDS: [&str; 7] = [
    "channel",
    "config",
    "installPlanApproval",
    "name",
    "source",
    "sourceNamespace",
    "startingCSV",
];

/// Fields of an OperatorGroup that a policy may set.
const GROUP_FIELDS: [&str; 5] = [
    "selector",
    "serviceAccountName",
    "staticProvidedAPIs",
    "targetNamespaces",
    "upgradeStrategy",
];

/// The namespace that an operator suggests for itself.
const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";

/// What a policy wants.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// The Subscription; nothing if it cannot be told.
    pub(super) subscription: Option<Value>,
    /// The OperatorGroup; nothing if it cannot be told.
    pub(super) group: Option<Value>,
    /// Versions that may be installed; any if there are none.
    pub(super) versions: Vec<String>,
    /// What is wrong with the policy.
    pub(super) errors: Vec<String>,
    /// Enforced policies about the same operator, this one among them.
    pub(super) overlapping: Vec<String>,
    /// Whether the catalog has to be asked again: nobody can watch it.
    pub(super) waits_for_package: bool,
}

/// What one part comes to, or what is wrong with it.
type Built<T> = Result<Result<T, String>, Stop>;

struct Builder<'b> {
    policy: &'b OperatorPolicy,
    look: &'b Look<'b>,
    world: &'b World<'b>,
}

/// Works out what a policy wants.
pub(super) fn wanted(
    policy: &OperatorPolicy,
    look: &Look<'_>,
    world: &World<'_>,
) -> Result<Wanted, Stop> {
    let builder = Builder {
        policy,
        look,
        world,
    };
    let mut wanted = Wanted::default();
    match builder.versions()? {
        Ok(versions) => wanted.versions = versions,
        Err(error) => wanted.errors.push(error),
    }
    match builder.subscription(&wanted.versions)? {
        Ok(subscription) => builder.complete(subscription, &mut wanted)?,
        Err(error) => wanted.errors.push(error),
    }
    let namespace = wanted.subscription.as_ref();
    let namespace = namespace.map_or("", |it| text(it, "namespace")).to_owned();
    match builder.group(&namespace)? {
        Err(error) => wanted.errors.push(error),
        Ok(_) if namespace.is_empty() => {}
        Ok(group) => {
            wanted.group = Some(group);
            let must_have = !policy.spec.compliance_type.is_must_not_have();
            if must_have && look.object(NAMESPACE, "", &namespace)?.is_none() {
                wanted.errors.push(format!(
                    "the operator namespace ('{namespace}') does not exist"
                ));
            }
        }
    }
    builder.find_overlaps(&mut wanted)?;
    Ok(wanted)
}

impl Builder<'_> {
    /// A value of the policy with its templates resolved.
    fn resolved(&self, value: &Value) -> Built<Value> {
        let annotations = self.policy.metadata.annotations.as_ref();
        let disabled = annotations.and_then(|all| all.get(annotation::DISABLE_TEMPLATES));
        let is_disabled = disabled.is_some_and(|value| value == "true");
        if is_disabled || !Side::Managed.has_template(&value.to_string()) {
            return Ok(Ok(value.clone()));
        }
        let request = Request {
            context: Context::Managed(ManagedContext::default()),
            source: Source::Definition(value.clone()),
            restriction: None,
            encrypt: None,
            decrypt: None,
            denied: Vec::new(),
        };
        match resolve_template(&request, self.look.facts, self.world) {
            Resolved::Needs(questions) => {
                let needs = questions.into_iter().map(crate::config_policy::Need::Read);
                Err(Stop::Needs(needs.collect()))
            }
            Resolved::Done(done) => Ok(done.value.map_err(|error| error.to_string())),
        }
    }

    fn versions(&self) -> Built<Vec<String>> {
        let value = json!(self.policy.spec.versions);
        let resolved = self.resolved(&value)?;
        Ok(resolved
            .map_err(|error| format!("could not resolve the version template: {error}"))
            .map(|value| {
                let versions = value.as_array().into_iter().flatten();
                let versions = versions.filter_map(|version| version.as_str().map(str::trim));
                let versions = versions.filter(|version| !version.is_empty());
                versions.map(str::to_owned).collect()
            }))
    }

    fn subscription(&self, versions: &[String]) -> Built<Value> {
        let resolved = self.resolved(&self.policy.spec.subscription)?;
        let value = match resolved {
            Ok(value) => value,
            Err(error) => return Ok(Err(format!("could not build subscription: {error}"))),
        };
        Ok(self.subscription_of(&value, versions))
    }

    fn subscription_of(&self, value: &Value, versions: &[String]) -> Result<Value, String> {
        let Some(fields) = value.as_object() else {
            return Err("the policy spec.subscription is invalid: it is not an object".to_owned());
        };
        let name = fields.get("name").and_then(Value::as_str);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err("name is required in spec.subscription".to_owned());
        };
        let problems = dns_label_problems(name);
        if !problems.is_empty() {
            return Err(format!(
                "the name '{name}' used for the subscription is invalid: {}",
                problems.join(", ")
            ));
        }
        let namespace = fields.get("namespace").and_then(Value::as_str);
        let is_wrong = |namespace: &&str| !dns_label_problems(namespace).is_empty();
        if let Some(namespace) = namespace.filter(is_wrong) {
            return Err(format!(
                "the namespace '{namespace}' used for the subscription is not a valid namespace identifier"
            ));
        }
        let mut spec = fields.clone();
        spec.remove("namespace");
        known_only(&spec, &SUBSCRIPTION_FIELDS, "spec.subscription")?;
        if spec.contains_key("installPlanApproval") {
            return Err("installPlanApproval is prohibited in spec.subscription".to_owned());
        }
        let policy = &self.policy.spec;
        let is_enforced = policy.remediation_action.is_enforce();
        let mut metadata = json!({"name": name, "namespace": namespace.unwrap_or_default()});
        if is_enforced {
            // Upgrades are in the hands of the policy unless it lets all of them through.
            let is_automatic =
                policy.upgrade_approval.as_deref() == Some("Automatic") && versions.is_empty();
            let approval = if is_automatic { "Automatic" } else { "Manual" };
            spec.insert("installPlanApproval".to_owned(), json!(approval));
            metadata["labels"] = json!({ names::MANAGED: "" });
            metadata["annotations"] = json!({ names::MANAGED: self.own_name() });
        }
        Ok(json!({
            "apiVersion": SUBSCRIPTION.api_version, "kind": SUBSCRIPTION.name,
            "metadata": metadata, "spec": spec,
        }))
    }

    /// Namespace and name of the policy.
    fn own_name(&self) -> String {
        let metadata = &self.policy.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        format!(
            "{namespace}.{}",
            metadata.name.as_deref().unwrap_or_default()
        )
    }

    /// Fills in what a Subscription leaves to the catalog.
    fn complete(&self, mut subscription: Value, wanted: &mut Wanted) -> Result<(), Stop> {
        let is_set = |field: &str| {
            let value = subscription["spec"][field].as_str();
            value.is_some_and(|value| !value.is_empty())
        };
        let is_whole = is_set("channel")
            && is_set("source")
            && is_set("sourceNamespace")
            && !text(&subscription, "namespace").is_empty();
        if !self.look.is_served(SUBSCRIPTION)? {
            wanted.waits_for_package = true;
            wanted.errors.push(if is_whole {
                "the Operator Lifecycle Manager is not installed on the cluster".to_owned()
            } else {
                NO_PACKAGE.to_owned()
            });
            return Ok(());
        }
        if !is_whole && let Err(error) = self.fill_in(&mut subscription, wanted)? {
            wanted.errors.push(error);
            return Ok(());
        }
        if text(&subscription, "namespace").is_empty() {
            let error = "namespace is required in spec.subscription".to_owned();
            wanted.errors.push(error);
            return Ok(());
        }
        wanted.subscription = Some(subscription);
        Ok(())
    }

    fn fill_in(&self, subscription: &mut Value, wanted: &mut Wanted) -> Built<()> {
        if text(subscription, "namespace").is_empty()
            && let Some(namespace) = self.known_namespace()
        {
            subscription["metadata"]["namespace"] = json!(namespace);
        }
        let name = text(subscription, "name").to_owned();
        let package = if self.look.is_served(PACKAGE)? {
            self.look.object(PACKAGE, "default", &name)?
        } else {
            None
        };
        if let Some(package) = package {
            return Ok(from_package(subscription, &package["status"]));
        }
        wanted.waits_for_package = true;
        // The catalog may be gone while its operator stays.
        let namespace = text(subscription, "namespace").to_owned();
        let live = match namespace.as_str() {
            "" => None,
            namespace => self.look.object(SUBSCRIPTION, namespace, &name)?,
        };
        let Some(live) = live else {
            return Ok(Err(NO_PACKAGE.to_owned()));
        };
        for field in ["channel", "source", "sourceNamespace"] {
            let is_empty = subscription["spec"][field]
                .as_str()
                .unwrap_or_default()
                .is_empty();
            if is_empty && !live["spec"][field].is_null() {
                subscription["spec"][field] = live["spec"][field].clone();
            }
        }
        Ok(Ok(()))
    }

    /// The namespace of the Subscription that the policy found before.
    fn known_namespace(&self) -> Option<&str> {
        let status = self.policy.status.as_ref()?;
        let mut known = status
            .related_objects
            .iter()
            .filter(|it| it.object.kind.as_deref() == Some(SUBSCRIPTION.name));
        let only = known.next().filter(|_| known.next().is_none())?;
        only.object.metadata.namespace.as_deref()
    }

    fn group(&self, namespace: &str) -> Built<Value> {
        let Some(group) = &self.policy.spec.operator_group else {
            return Ok(Ok(json!({
                "apiVersion": GROUP.api_version, "kind": GROUP.name,
                "metadata": {"namespace": namespace, "generateName": format!("{namespace}-")},
                "spec": {},
            })));
        };
        let value = match self.resolved(group)? {
            Ok(value) => value,
            Err(error) => return Ok(Err(format!("could not build operator group: {error}"))),
        };
        Ok(group_of(&value, namespace))
    }

    /// Finds enforced policies about the same operator: none of them may change anything then.
    fn find_overlaps(&self, wanted: &mut Wanted) -> Result<(), Stop> {
        let Some(label) = wanted.subscription.as_ref().map(label) else {
            return Ok(());
        };
        if !self.policy.spec.remediation_action.is_enforce() {
            return Ok(());
        }
        let own_name = self.policy.metadata.name.as_deref().unwrap_or_default();
        let namespace = self
            .policy
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let all = self.look.list(POLICY, namespace, "")?;
        let is_other = |policy: &&Value| {
            let action = policy["spec"]["remediationAction"].as_str();
            policy["status"]["resolvedSubscriptionLabel"] == *label
                && action.is_some_and(|action| action.eq_ignore_ascii_case("enforce"))
                && text(policy, "name") != own_name
        };
        let others = all
            .iter()
            .filter(is_other)
            .map(|policy| text(policy, "name"));
        let mut names: Vec<String> = others
            .chain([own_name])
            .map(|name| format!("{name}.{namespace}"))
            .collect();
        if names.len() > 1 {
            names.sort();
            wanted.errors.push(format!(
                "the specified operator is managed by multiple enforced policies ({})",
                names.join(", ")
            ));
            wanted.overlapping = names;
            wanted.group = None;
        }
        Ok(())
    }
}

const NO_PACKAGE: &str =
    "the subscription defaults could not be determined because the PackageManifest was not found";

/// Refuses fields that are not known.
fn known_only(fields: &Map<String, Value>, known: &[&str], place: &str) -> Result<(), String> {
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        None => Ok(()),
        Some(field) => Err(format!(
            "the policy {place} is invalid: json: unknown field {field:?}"
        )),
    }
}

fn from_package(subscription: &mut Value, package: &Value) -> Result<(), String> {
    let of_package = |field: &str| package[field].as_str().unwrap_or_default();
    let (catalog, namespace) = (
        of_package("catalogSource"),
        of_package("catalogSourceNamespace"),
    );
    if catalog.is_empty() || namespace.is_empty() {
        return Err("the subscription defaults could not be determined because the PackageManifest didn't specify a catalog".to_owned());
    }
    let spec = &mut subscription["spec"];
    let differs = |field: &str, found: &str| {
        let asked = spec[field].as_str().unwrap_or_default();
        !asked.is_empty() && asked != found
    };
    if differs("source", catalog) || differs("sourceNamespace", namespace) {
        return Err("the subscription defaults could not be determined because the catalog specified in the policy does not match what was found in the PackageManifest on the cluster".to_owned());
    }
    if spec["channel"].as_str().unwrap_or_default().is_empty() {
        let channel = of_package("defaultChannel");
        if channel.is_empty() {
            return Err("the default channel could not be determined because the PackageManifest didn't specify one".to_owned());
        }
        spec["channel"] = json!(channel);
    }
    spec["source"] = json!(catalog);
    spec["sourceNamespace"] = json!(namespace);
    let chosen = spec["channel"].clone();
    if text(subscription, "namespace").is_empty() {
        let channels = package["channels"].as_array();
        let mut channels = channels.into_iter().flatten();
        let channel = channels.find(|channel| channel["name"] == chosen);
        let suggested = channel.map_or(&Value::Null, |channel| {
            &channel["currentCSVDesc"]["annotations"][SUGGESTED_NAMESPACE]
        });
        let suggested = suggested.as_str().unwrap_or_default();
        subscription["metadata"]["namespace"] = json!(suggested);
    }
    Ok(())
}

fn group_of(value: &Value, namespace: &str) -> Result<Value, String> {
    let Some(fields) = value.as_object() else {
        return Err("the policy spec.operatorGroup is invalid: it is not an object".to_owned());
    };
    let asked = fields.get("namespace").and_then(Value::as_str);
    let asked = asked.unwrap_or_default();
    if !asked.is_empty() && !namespace.is_empty() && asked != namespace {
        return Err(format!(
            "the namespace specified in spec.operatorGroup ('{asked}') must match the namespace used for the subscription ('{namespace}')"
        ));
    }
    let Some(name) = fields.get("name").and_then(Value::as_str) else {
        return Err("name is required in spec.operatorGroup".to_owned());
    };
    let mut spec = fields.clone();
    spec.remove("name");
    spec.remove("namespace");
    known_only(&spec, &GROUP_FIELDS, "spec.operatorGroup")?;
    Ok(json!({
        "apiVersion": GROUP.api_version, "kind": GROUP.name,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    }))
}

/// Characters that a label may have.
const MAX_LABEL: usize = 63;

/// What the Operator Lifecycle Manager marks the objects of an operator with, without its prefix.
pub(super) fn label(subscription: &Value) -> String {
    let (name, namespace) = (text(subscription, "name"), text(subscription, "namespace"));
    let label: String = format!("{name}.{namespace}")
        .chars()
        .take(MAX_LABEL)
        .collect();
    label.trim_end_matches(['.', '_', '-']).to_owned()
}
