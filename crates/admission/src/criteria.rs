//! Rules and selectors: whether a webhook, a policy or a binding concerns a request.

use bellwether_json::label::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use crate::Host;
use crate::attributes::{Attributes, Target};

/// One of `rules` or `resourceRules`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    resource_names: Vec<String>,
}

impl Rule {
    fn list(value: &Value) -> Vec<Self> {
        let items = value.as_array().into_iter().flatten();
        // What is stored has passed validation.
        items
            .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
            .collect()
    }

    fn matches(&self, attributes: &Attributes<'_>, target: &Target) -> bool {
        let has = |items: &[String], wanted: &str| items.iter().any(|it| it == "*" || it == wanted);
        self.matches_scope(attributes, target)
            && has(&self.operations, attributes.operation.as_str())
            && has(&self.api_groups, &target.group)
            && has(&self.api_versions, &target.version)
            && self.matches_resource(attributes, target)
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|it| it == attributes.name))
    }

    fn matches_scope(&self, attributes: &Attributes<'_>, target: &Target) -> bool {
        let is_namespace = target.group.is_empty() && target.resource == "namespaces";
        let is_in_one = !is_namespace && !attributes.namespace.is_empty();
        match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => is_in_one,
            Some("Cluster") => !is_in_one,
            Some(_) => false,
        }
    }

    fn matches_resource(&self, attributes: &Attributes<'_>, target: &Target) -> bool {
        self.resources.iter().any(|name| {
            let (resource, subresource) = name.split_once('/').unwrap_or((name, ""));
            (resource == "*" || resource == target.resource)
                && (subresource == "*" || subresource == attributes.subresource)
        })
    }
}

/// Why matching failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The namespace of the request does not exist.
    NoNamespace(String),
    /// A selector cannot be read.
    Selector(String),
}

/// Rules and selectors of a webhook, a policy or a binding.
#[derive(Debug, Clone)]
pub struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// True if no rules mean all requests.
    is_open: bool,
    is_equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
}

impl Criteria {
    /// Reads the rules and selectors of a webhook.
    pub fn of_webhook(webhook: &Value) -> Self {
        Self::new(webhook, &webhook["rules"], &Value::Null, false)
    }

    /// Reads `matchConstraints` of a policy, or `matchResources` of a binding.
    pub fn of_policy(resources: &Value) -> Self {
        let (rules, excluded) = (
            &resources["resourceRules"],
            &resources["excludeResourceRules"],
        );
        Self::new(resources, rules, excluded, true)
    }

    fn new(source: &Value, rules: &Value, excluded: &Value, is_open: bool) -> Self {
        let selector = |field: &str| match &source[field] {
            Value::Null => Ok(LabelSelector::everything()),
            selector => {
                LabelSelector::from_object(Some(selector)).map_err(|error| error.to_string())
            }
        };
        Self {
            rules: Rule::list(rules),
            excluded: Rule::list(excluded),
            is_open,
            is_equivalent: source["matchPolicy"] != "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// The version of the resource as which the request is to be seen; none if it does not match.
    ///
    /// A failure to evaluate a selector counts only if the rules match.
    pub fn matches<'a>(
        &self,
        attributes: &Attributes<'a>,
        host: &dyn Host,
    ) -> Result<Option<&'a Target>, Failure> {
        // Rules are cheap, and most requests match none.
        if self.find(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        let found = if self.is_open && self.rules.is_empty() {
            Some(attributes.target)
        } else {
            self.find(&self.rules, attributes)
        };
        let Some(target) = found else {
            return Ok(None);
        };
        let is_selected = self.matches_objects(attributes)?;
        let is_selected = is_selected && self.matches_namespace(attributes, host)?;
        Ok(is_selected.then_some(target))
    }

    fn find<'a>(&self, rules: &[Rule], attributes: &Attributes<'a>) -> Option<&'a Target> {
        if rules
            .iter()
            .any(|rule| rule.matches(attributes, attributes.target))
        {
            return Some(attributes.target);
        }
        if !self.is_equivalent {
            return None;
        }
        // Earlier rules come first.
        rules.iter().find_map(|rule| {
            let mut equivalents = attributes.equivalents.iter();
            equivalents.find(|target| rule.matches(attributes, target))
        })
    }

    fn matches_objects(&self, attributes: &Attributes<'_>) -> Result<bool, Failure> {
        let selector = self.objects.as_ref().map_err(selector_failure)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let objects = [attributes.object, attributes.old];
        let mut objects = objects.into_iter().flatten();
        Ok(objects.any(|object| selector.matches_object(object)))
    }

    fn matches_namespace(
        &self,
        attributes: &Attributes<'_>,
        host: &dyn Host,
    ) -> Result<bool, Failure> {
        let is_namespace = attributes.target.resource == "namespaces";
        if attributes.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(selector_failure)?;
        if selector.is_everything() {
            return Ok(true);
        }
        // A namespace that is written is selected by what it becomes.
        if let Some(object) = attributes.object
            && is_namespace
            && attributes.subresource.is_empty()
        {
            return Ok(selector.matches_object(object));
        }
        let namespace = host.namespace(attributes.namespace);
        let namespace =
            namespace.ok_or_else(|| Failure::NoNamespace(attributes.namespace.to_owned()))?;
        Ok(selector.matches_object(&namespace))
    }
}

#[expect(clippy::ptr_arg, reason = "the error of a stored result")]
fn selector_failure(error: &String) -> Failure {
    Failure::Selector(error.clone())
}

#[cfg(test)]
mod tests {
    use bellwether_api::admission::Operation;
    use serde_json::json;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl bellwether_cel::Authorizer for Nothing {
        fn authorize(&self, _: &bellwether_cel::AccessCheck<'_>) -> bellwether_cel::AccessDecision {
            bellwether_cel::AccessDecision::default()
        }
    }

    impl Host for Nothing {
        fn namespace(&self, name: &str) -> Option<Value> {
            (name == "labelled").then(|| json!({"metadata": {"labels": {"env": "prod"}}}))
        }
        fn convert(&self, object: &Value, _: &Target) -> Value {
            object.clone()
        }
        fn is_namespaced(&self, _: &str, _: &str) -> Option<bool> {
            None
        }
        fn object(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Value> {
            None
        }
        fn objects(&self, _: &str, _: &str, _: &str) -> Vec<Value> {
            Vec::new()
        }
    }

    fn target(group: &str, version: &str, resource: &str, kind: &str) -> Target {
        Target {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            kind: crate::Kind {
                group: group.into(),
                version: version.into(),
                name: kind.into(),
            },
        }
    }

    /// Matches a request to create a scaler in a namespace.
    #[track_caller]
    fn check(webhook: &Value, namespace: &str, expected: &Result<Option<&str>, Failure>) {
        let requested = target("autoscaling", "v2", "scalers", "Scaler");
        let equivalents = [target("autoscaling", "v1", "scalers", "Scaler")];
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        let nothing = Value::Null;
        let attributes = Attributes {
            operation: Operation::Create,
            target: &requested,
            equivalents: &equivalents,
            subresource: "",
            name: "a",
            namespace,
            object: Some(&object),
            old: None,
            user: &nothing,
            options: &nothing,
            dry_run: false,
        };
        let found = Criteria::of_webhook(webhook).matches(&attributes, &Nothing);
        let found = found.map(|found| found.map(|target| target.version.as_str()));
        assert_eq!(found, *expected, "{webhook}");
    }

    fn rule(change: &Value) -> Value {
        let mut rule = json!({
            "operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v2"],
            "resources": ["scalers"],
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            rule[key] = value.clone();
        }
        json!({"rules": [rule]})
    }

    #[test]
    fn rules_match_by_operation_group_version_resource_and_scope() {
        for (change, expected) in [
            (json!({}), Some("v2")),
            (json!({"operations": ["UPDATE", "DELETE"]}), None),
            (json!({"operations": ["*"]}), Some("v2")),
            (json!({"apiGroups": ["*"]}), Some("v2")),
            (json!({"apiGroups": [""]}), None),
            (json!({"apiVersions": ["v1"]}), Some("v1")),
            (json!({"apiVersions": ["v3"]}), None),
            (json!({"resources": ["scalers/status"]}), None),
            (json!({"resources": ["*/*"]}), Some("v2")),
            (json!({"resources": ["*"]}), Some("v2")),
            (json!({"resources": ["*/scale"]}), None),
            (json!({"scope": "Namespaced"}), Some("v2")),
            (json!({"scope": "Cluster"}), None),
        ] {
            check(&rule(&change), "n", &Ok(expected));
        }
        check(&json!({"rules": []}), "n", &Ok(None));
    }

    #[test]
    fn exact_rules_do_not_match_other_versions() {
        let mut webhook = rule(&json!({"apiVersions": ["v1"]}));
        webhook["matchPolicy"] = "Exact".into();
        check(&webhook, "n", &Ok(None));
    }

    #[test]
    fn selectors_choose_objects_and_namespaces() {
        let with = |field: &str, labels: Value| {
            let mut webhook = rule(&json!({}));
            webhook[field] = json!({"matchLabels": labels});
            webhook
        };
        let chosen = with("objectSelector", json!({"app": "web"}));
        check(&chosen, "n", &Ok(Some("v2")));
        let other = with("objectSelector", json!({"app": "db"}));
        check(&other, "n", &Ok(None));
        let chosen = with("namespaceSelector", json!({"env": "prod"}));
        check(&chosen, "labelled", &Ok(Some("v2")));
        check(&chosen, "", &Ok(Some("v2")));
        let other = with("namespaceSelector", json!({"env": "dev"}));
        check(&other, "labelled", &Ok(None));
        check(&other, "gone", &Err(Failure::NoNamespace("gone".into())));
    }
}
