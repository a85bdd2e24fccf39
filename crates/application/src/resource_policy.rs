//! Policies about single objects: apply-once, garbage-collect, shared-resource, take-over, read-only, resource-update.
//!
//! They are read from the application itself. Several policies of a type are merged: lists follow each other, what is on
//! in one of them is on, and of other values the first counts.

use bellwether_api::oam::names::{label, policy as policy_type};
use bellwether_api::oam::{Application, ApplicationPolicy};
use bellwether_api::work::Affect;
use bellwether_json::path::str_at;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::appfile::Appfile;
use crate::decode::decode;
use crate::default_steps::policy_name;

/// Which objects a rule is about: every list that is not empty has to have the value of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Names of components.
    pub component_names: Vec<String>,
    /// Types of components.
    pub component_types: Vec<String>,
    /// `WORKLOAD` or `TRAIT`; `COMPONENT` means the same as `WORKLOAD`.
    pub oam_types: Vec<String>,
    /// Types of traits.
    pub trait_types: Vec<String>,
    /// Kinds.
    pub resource_types: Vec<String>,
    /// Names of objects.
    pub resource_names: Vec<String>,
}

impl Selector {
    /// Whether an object is meant. A selector without any list means none.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| str_at(object, &["metadata", "labels", key]).unwrap_or_default();
        let oam_type = label(label::RESOURCE_TYPE);
        let pairs = [
            (&self.component_names, label(label::COMPONENT)),
            (&self.component_types, label(label::WORKLOAD_TYPE)),
            (&self.trait_types, label(label::TRAIT_TYPE)),
            (
                &self.resource_types,
                object["kind"].as_str().unwrap_or_default(),
            ),
            (
                &self.resource_names,
                str_at(object, &["metadata", "name"]).unwrap_or_default(),
            ),
        ];
        let oam_matches = |wanted: &String| {
            wanted == oam_type || (wanted == "COMPONENT" && oam_type == label::WORKLOAD)
        };
        let mut says_something = !self.oam_types.is_empty();
        if says_something && !self.oam_types.iter().any(oam_matches) {
            return false;
        }
        for (wanted, found) in pairs {
            if wanted.is_empty() {
                continue;
            }
            says_something = true;
            if !wanted.iter().any(|wanted| wanted == found) {
                return false;
            }
        }
        says_something
    }
}

/// A rule that says only which objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Rule<S> {
    /// Which objects.
    pub selector: Selector,
    /// What happens to them.
    pub strategy: S,
    /// Whether what depends on them is deleted too.
    pub propagation: Option<Propagation>,
}

/// What happens to what depends on an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Propagation {
    /// The object itself stays, and belongs to nobody.
    Orphan,
    /// It is deleted too.
    Cascading,
}

/// Rules that say only which objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SelectPolicy {
    /// The rules.
    pub rules: Vec<Rule<Nothing>>,
}

/// No strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Nothing {}

impl SelectPolicy {
    /// Whether a rule is about the object.
    pub fn selects(&self, object: &Value) -> bool {
        self.rules.iter().any(|rule| rule.selector.matches(object))
    }
}

/// The properties of an apply-once policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApplyOncePolicy {
    /// Whether it is in force.
    pub enable: bool,
    /// What is kept; everything if there are none.
    pub rules: Vec<Rule<Option<ApplyOnceStrategy>>>,
}

/// Which changes of others are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApplyOnceStrategy {
    /// Fields, or `*` for the whole object.
    pub path: Vec<String>,
    /// When.
    pub affect: Affect,
}

/// Why an object is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The application is applied.
    Update,
    /// Objects are kept as they were applied.
    StateKeep,
}

impl ApplyOncePolicy {
    /// Whether nothing at all is repaired.
    pub fn keeps_everything(&self) -> bool {
        self.enable && self.rules.is_empty()
    }

    /// What is kept of an object; the first rule that is about it counts.
    pub fn strategy(&self, object: &Value) -> Option<&ApplyOnceStrategy> {
        if !self.enable {
            return None;
        }
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.selector.matches(object))?;
        rule.strategy.as_ref()
    }

    /// Fields of an object that keep the values that others gave them.
    pub fn kept_fields(&self, object: &Value, occasion: Occasion) -> Option<&[String]> {
        let strategy = self.strategy(object)?;
        let holds = match strategy.affect {
            Affect::Always => true,
            Affect::OnUpdate => occasion == Occasion::Update,
            Affect::OnStateKeep => occasion == Occasion::StateKeep,
        };
        holds.then_some(strategy.path.as_slice())
    }
}

/// The properties of a garbage-collect policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GarbageCollectPolicy {
    /// How many revisions of the application are kept.
    pub application_revision_limit: Option<usize>,
    /// Whether objects of old versions stay.
    pub keep_legacy_resource: bool,
    /// Whether objects are deleted although the workflow failed.
    pub continue_on_failure: bool,
    /// In which order objects are deleted.
    pub order: Option<String>,
    /// What holds for single objects.
    pub rules: Vec<Rule<GarbageCollectStrategy>>,
}

/// When an object is deleted that the application no longer has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GarbageCollectStrategy {
    /// At once.
    #[default]
    OnAppUpdate,
    /// With the application.
    OnAppDelete,
    /// Never.
    Never,
}

impl GarbageCollectPolicy {
    /// When an object is deleted; the first rule that is about it counts.
    pub fn strategy(&self, object: &Value) -> GarbageCollectStrategy {
        let rule = self.rules.iter().find(|rule| rule.selector.matches(object));
        rule.map_or(GarbageCollectStrategy::OnAppUpdate, |rule| rule.strategy)
    }

    /// What happens to what depends on an object.
    pub fn propagation(&self, object: &Value) -> Option<Propagation> {
        self.rules
            .iter()
            .find(|rule| rule.selector.matches(object))?
            .propagation
    }
}

/// The properties of a resource-update policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResourceUpdatePolicy {
    /// The rules.
    pub rules: Vec<Rule<ResourceUpdateStrategy>>,
}

/// How an object is updated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceUpdateStrategy {
    /// By a patch, or as a whole.
    pub op: UpdateOperation,
    /// Fields that cannot change: if they do, the object is created again.
    pub recreate_fields: Vec<String>,
}

/// By what an object is updated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateOperation {
    /// By a patch that keeps what others have set.
    #[default]
    Patch,
    /// As a whole.
    Replace,
}

/// All policies of an application about single objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePolicies {
    /// Which changes of others are kept.
    pub apply_once: ApplyOncePolicy,
    /// When objects are deleted.
    pub garbage_collect: GarbageCollectPolicy,
    /// Objects that several applications have.
    pub shared: SelectPolicy,
    /// Objects that exist already and are taken.
    pub take_over: SelectPolicy,
    /// Objects that are never written.
    pub read_only: SelectPolicy,
    /// How objects are updated.
    pub update: ResourceUpdatePolicy,
}

impl ResourcePolicies {
    /// Reads the policies of an application; the error names the policy.
    pub fn of(application: &Application) -> Result<Self, String> {
        let labels = application.metadata.labels.as_ref();
        let is_addon = labels.is_some_and(|labels| labels.contains_key(label::ADDON_NAME));
        Self::read(&application.spec.policies, is_addon)
    }

    /// Reads the policies of an application, as other policies may have changed them.
    pub fn of_appfile(appfile: &Appfile<'_>) -> Result<Self, String> {
        let is_addon = appfile.context.labels.contains_key(label::ADDON_NAME);
        Self::read(&appfile.policies_written, is_addon)
    }

    fn read(written: &[ApplicationPolicy], is_addon: bool) -> Result<Self, String> {
        let mut policies = Self {
            apply_once: merged(written, policy_type::APPLY_ONCE)?.unwrap_or_default(),
            garbage_collect: merged(written, policy_type::GARBAGE_COLLECT)?.unwrap_or_default(),
            shared: merged(written, policy_type::SHARED_RESOURCE)?.unwrap_or_default(),
            take_over: merged(written, policy_type::TAKE_OVER)?.unwrap_or_default(),
            read_only: merged(written, policy_type::READ_ONLY)?.unwrap_or_default(),
            update: merged(written, policy_type::RESOURCE_UPDATE)?.unwrap_or_default(),
        };
        let has_policy = written
            .iter()
            .any(|policy| policy.policy_type == policy_type::APPLY_ONCE);
        if is_addon && !has_policy {
            policies.apply_once.enable = true;
        }
        Ok(policies)
    }
}

fn merged<T: DeserializeOwned>(
    written: &[ApplicationPolicy],
    wanted: &str,
) -> Result<Option<T>, String> {
    let mut whole: Option<Value> = None;
    for (index, policy) in written.iter().enumerate() {
        if policy.policy_type != wanted {
            continue;
        }
        let properties = policy.properties.clone().unwrap_or_default();
        if !properties.is_null()
            && let Err(problem) = decode::<T>(&properties)
        {
            let name = policy_name(policy, index);
            return Err(format!("policy {name} of type {wanted}: {problem}"));
        }
        match &mut whole {
            Some(whole) => merge(whole, properties),
            None => whole = Some(properties),
        }
    }
    let Some(whole) = whole.filter(|whole| !whole.is_null()) else {
        return Ok(None);
    };
    decode(&whole)
        .map(Some)
        .map_err(|problem| format!("policies of type {wanted}: {problem}"))
}

fn merge(whole: &mut Value, other: Value) {
    match (whole, other) {
        (Value::Object(whole), Value::Object(other)) => {
            for (name, value) in other {
                match whole.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => {
                        whole.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(whole), Value::Array(other)) => whole.extend(other),
        (Value::Bool(whole), Value::Bool(other)) => *whole |= other,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn application(policies: Value) -> Application {
        serde_json::from_value(
            json!({"metadata": {"name": "shop"}, "spec": {"components": [], "policies": policies}}),
        )
        .unwrap()
    }

    fn object() -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": "settings", "labels": {
            "app.oam.dev/component": "web", "app.oam.dev/resourceType": "WORKLOAD", "workload.oam.dev/type": "k8s-objects"}}})
    }

    #[track_caller]
    fn check_selector(selector: Value, expected: bool) {
        let selector: Selector = serde_json::from_value(selector).unwrap();
        assert_eq!(selector.matches(&object()), expected, "{selector:?}");
    }

    #[test]
    fn every_list_of_a_selector_has_to_match() {
        check_selector(json!({}), false);
        check_selector(json!({"componentNames": ["web", "x"]}), true);
        check_selector(json!({"componentNames": ["x"]}), false);
        check_selector(
            json!({"componentNames": ["web"], "resourceTypes": ["Secret"]}),
            false,
        );
        check_selector(
            json!({"resourceTypes": ["ConfigMap"], "resourceNames": ["settings"]}),
            true,
        );
        check_selector(json!({"oamTypes": ["WORKLOAD"]}), true);
        check_selector(json!({"oamTypes": ["COMPONENT"]}), true);
        check_selector(json!({"oamTypes": ["TRAIT"]}), false);
        check_selector(json!({"traitTypes": ["scaler"]}), false);
    }

    #[test]
    fn policies_of_a_type_are_merged() {
        let rule = |path: &str| json!({"selector": {"componentNames": ["web"]}, "strategy": {"path": [path]}});
        let policies = ResourcePolicies::of(&application(json!([
            {"name": "a", "type": "apply-once", "properties": {"enable": false, "rules": [rule("data.a")]}},
            {"name": "b", "type": "apply-once", "properties": {"enable": true, "rules": [rule("data.b")]}},
        ])))
        .unwrap();
        assert_eq!(policies.apply_once.rules.len(), 2);
        assert_eq!(
            policies.apply_once.kept_fields(&object(), Occasion::Update),
            Some(&["data.a".to_owned()][..])
        );
        assert!(!policies.apply_once.keeps_everything());
    }

    #[test]
    fn errors_name_the_policy_and_the_field() {
        let rule = json!({"selector": {"componentNames": ["web"]}, "strategy": "nevr"});
        let problem = ResourcePolicies::of(&application(json!([
            {"name": "fine", "type": "garbage-collect", "properties": {"rules": []}},
            {"name": "tidy", "type": "garbage-collect", "properties": {"rules": [rule]}},
        ])))
        .unwrap_err();
        let expected =
            "policy tidy of type garbage-collect: rules[0].strategy: unknown variant `nevr`";
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check_affect(affect: Value, update: bool, state_keep: bool) {
        let policies = ResourcePolicies::of(&application(json!([{"name": "a", "type": "apply-once", "properties": {
            "enable": true,
            "rules": [{"selector": {"resourceTypes": ["ConfigMap"]}, "strategy": {"path": ["*"], "affect": affect}}],
        }}])))
        .unwrap();
        let kept = |occasion| {
            policies
                .apply_once
                .kept_fields(&object(), occasion)
                .is_some()
        };
        assert_eq!(
            (kept(Occasion::Update), kept(Occasion::StateKeep)),
            (update, state_keep),
            "{affect}"
        );
    }

    #[test]
    fn fields_are_kept_when_the_rule_says_so() {
        check_affect(json!(""), true, true);
        check_affect(json!("always"), true, true);
        check_affect(json!("onUpdate"), true, false);
        check_affect(json!("onStateKeep"), false, true);
    }

    #[test]
    fn wrong_properties_are_refused_with_the_policy() {
        let error = ResourcePolicies::of(&application(
            json!([{"name": "a", "type": "garbage-collect", "properties": {"rules": 1}}]),
        ));
        assert!(error.unwrap_err().contains("garbage-collect"));
    }
}
