//! How one manifest is treated: what the matching configurations of a work say together.

use std::collections::BTreeMap;

use bellwether_api::work::names::annotation;
use bellwether_api::work::{
    Affect, ConditionRule, DeletePropagationPolicy, FeedbackRule, FieldRetention, ManifestConfig,
    ManifestResourceMeta, ManifestWorkSpec, ResourceIdentifier, UpdateStrategy,
};

use bellwether_apply::{Drift, ObjectId};

/// How one manifest is treated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options<'a> {
    /// How it is brought to the cluster; nothing is Update.
    pub strategy: Option<&'a UpdateStrategy>,
    /// What is concluded from it: the rules of all configurations that match.
    pub rules: Vec<&'a ConditionRule>,
    /// Which values come back.
    pub feedback: &'a [FeedbackRule],
}

/// The configurations of a work.
#[derive(Debug, Clone)]
pub struct Configs<'a>(Vec<Entry<'a>>);

/// A configuration, and what it turned out to mean.
#[derive(Debug, Clone)]
struct Entry<'a> {
    config: &'a ManifestConfig,
    /// The group that its identifier means.
    group: &'a str,
    /// Whether the work has an object that it is about.
    is_met: bool,
}

impl Entry<'_> {
    fn is_about(&self, object: &ObjectId) -> bool {
        self.group == object.group && names(&self.config.resource_identifier, object)
    }
}

impl<'a> Configs<'a> {
    /// Finds out which of the objects of a work each configuration means.
    ///
    /// An identifier without a group means the core group. Where the work has no such object of the
    /// core group, but of exactly one other, it means that one: `resource: jobs` alone is enough to
    /// name a Job.
    pub fn new(
        configs: &'a [ManifestConfig],
        objects: impl IntoIterator<Item = &'a ObjectId>,
    ) -> Self {
        let objects: Vec<&ObjectId> = objects.into_iter().collect();
        let group_of = |identifier: &'a ResourceIdentifier| {
            let written = identifier.group.as_deref().unwrap_or_default();
            if !written.is_empty() {
                return written;
            }
            let named = objects.iter().filter(|object| names(identifier, object));
            let mut groups: Vec<&str> = named.map(|object| object.group.as_str()).collect();
            groups.sort_unstable();
            groups.dedup();
            // The core group is the empty one, which is the first.
            match groups.as_slice() {
                [one] => one,
                _ => written,
            }
        };
        let entry = |config: &'a ManifestConfig| {
            let mut entry = Entry {
                config,
                group: group_of(&config.resource_identifier),
                is_met: false,
            };
            entry.is_met = objects.iter().any(|object| entry.is_about(object));
            entry
        };
        Self(configs.iter().map(entry).collect())
    }

    /// What the configurations that match an object say: the rules of all of them, and of every
    /// other part the first that has it.
    pub fn of(&self, object: &ObjectId) -> Options<'a> {
        let mut options = Options::default();
        for entry in self.0.iter().filter(|entry| entry.is_about(object)) {
            let config = entry.config;
            options.rules.extend(&config.condition_rules);
            if options.feedback.is_empty() {
                options.feedback = &config.feedback_rules;
            }
            options.strategy = options.strategy.or(config.update_strategy.as_ref());
        }
        options
    }
}

impl<'a> Configs<'a> {
    /// The rules of an object whose kind the cluster does not know, so that nobody can tell what
    /// its resource is called: those of configurations that are about no other object, if group,
    /// namespace and name are right.
    pub fn rules_of_unknown(&self, meta: &ManifestResourceMeta) -> Vec<&'a ConditionRule> {
        let is_about = |entry: &&Entry<'a>| {
            let identifier = &entry.config.resource_identifier;
            let namespace = identifier.namespace.as_deref().unwrap_or_default();
            !entry.is_met
                && (entry.group == meta.group || entry.group.is_empty())
                && (is_like(namespace, &meta.namespace) || meta.namespace.is_empty())
                && is_like(&identifier.name, &meta.name)
        };
        let found = self.0.iter().filter(is_about);
        found
            .flat_map(|entry| &entry.config.condition_rules)
            .collect()
    }
}

/// Whether an identifier names an object, whatever its group; names and namespaces may have
/// asterisks.
fn names(identifier: &ResourceIdentifier, object: &ObjectId) -> bool {
    identifier.resource == object.resource
        && is_like(
            identifier.namespace.as_deref().unwrap_or_default(),
            &object.namespace,
        )
        && is_like(&identifier.name, &object.name)
}

/// Whether a text is like a pattern, in which an asterisk stands for any text.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    // Each piece between asterisks is taken where it comes first; only the last is bound to the end.
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return text.ends_with(piece);
        }
        match text.find(piece) {
            Some(index) => text = &text[index + piece.len()..],
            None => return false,
        }
    }
    true
}

/// Whether an object goes with its work. One that does not is left where it is.
pub fn is_owned(spec: &ManifestWorkSpec, object: &ObjectId) -> bool {
    let Some(option) = &spec.delete_option else {
        return true;
    };
    match &option.propagation_policy {
        DeletePropagationPolicy::Orphan => false,
        DeletePropagationPolicy::SelectivelyOrphan => {
            let rules = option.selectively_orphans.iter();
            !rules
                .flat_map(|orphans| &orphans.orphaning_rules)
                .any(|rule| {
                    rule.group.as_deref().unwrap_or_default() == object.group
                        && rule.resource == object.resource
                        && rule.namespace.as_deref().unwrap_or_default() == object.namespace
                        && rule.name == object.name
                })
        }
        DeletePropagationPolicy::Foreground | DeletePropagationPolicy::Other(_) => true,
    }
}

/// Whether an object that others deleted stays deleted until the work changes.
pub fn keeps_deleted(annotations: Option<&BTreeMap<String, String>>, object: &ObjectId) -> bool {
    let list = annotations.and_then(|all| all.get(annotation::KEEP_DELETED));
    list.is_some_and(|list| {
        let object = object.to_string();
        list.split(',').any(|entry| entry.trim() == object)
    })
}

/// What happens to changes of others to an object: `kept` are the fields that the work names of it, and `applied_before` says
/// whether this version of it was applied.
pub fn drift<'a>(
    annotations: Option<&BTreeMap<String, String>>,
    kept: Option<&'a FieldRetention>,
    object: &ObjectId,
    applied_before: bool,
) -> Drift<'a> {
    let holds = |kept: &&FieldRetention| match kept.affect {
        Affect::Always => true,
        Affect::OnUpdate => !applied_before,
        Affect::OnStateKeep => applied_before,
    };
    match kept.filter(holds) {
        Some(kept) => Drift::KeepFields(&kept.paths),
        // No field is kept, only the deletion.
        None if keeps_deleted(annotations, object) => Drift::KeepFields(&[]),
        None => Drift::Undo,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: "apps".into(),
            resource: "deployments".into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn asterisks_stand_for_any_text() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        };
        check("web", "web", true);
        check("web", "web1", false);
        check("*", "", true);
        check("*", "anything", true);
        check("web-*", "web-", true);
        check("web-*-1", "web-1", false);
        check("web-*-1", "web-a-1-1", true);
        check("*a*b*", "xxaxxbxx", true);
        check("*a*b*", "xxbxxaxx", false);
        check("a*a", "a", false);
        check("w.b", "web", false);
    }

    #[test]
    fn the_first_that_has_a_part_counts_and_all_rules_do() {
        let configs: Vec<ManifestConfig> = serde_json::from_value(json!([
            {"resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "other", "namespace": "n"},
             "updateStrategy": {"type": "ReadOnly"}},
            {"resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "*", "namespace": "n"},
             "conditionRules": [{"type": "WellKnownConditions", "condition": "Complete"}]},
            {"resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "web", "namespace": "*"},
             "updateStrategy": {"type": "CreateOnly"},
             "conditionRules": [{"type": "CEL", "condition": "X"}]},
        ]))
        .unwrap();
        let objects = [object("n", "web"), object("m", "none")];
        let configs = Configs::new(&configs, &objects);
        let options = configs.of(&objects[0]);
        assert_eq!(options.strategy.unwrap().kind.as_str(), "CreateOnly");
        let conditions = options.rules.iter().map(|rule| rule.condition.as_deref());
        assert_eq!(
            conditions.collect::<Vec<_>>(),
            [Some("Complete"), Some("X")]
        );
        assert_eq!(configs.of(&objects[1]), Options::default());
    }

    #[test]
    fn an_identifier_without_a_group_means_what_the_work_has() {
        let of_group = |group: &str| ObjectId {
            group: group.into(),
            resource: "jobs".into(),
            namespace: "n".into(),
            name: "j".into(),
        };
        let check = |written: Value, groups: &[&str], expected: &[&str]| {
            let configs: Vec<ManifestConfig> = serde_json::from_value(json!([
                {"resourceIdentifier": {"group": written, "resource": "jobs", "name": "j", "namespace": "n"},
                 "updateStrategy": {"type": "ReadOnly"}},
            ]))
            .unwrap();
            let objects: Vec<ObjectId> = groups.iter().map(|group| of_group(group)).collect();
            let configs = Configs::new(&configs, &objects);
            let meant = objects
                .iter()
                .filter(|object| configs.of(object).strategy.is_some());
            let meant: Vec<&str> = meant.map(|object| object.group.as_str()).collect();
            assert_eq!(meant, expected, "{written} {groups:?}");
        };
        check(json!(null), &["batch"], &["batch"]);
        check(json!(""), &["batch"], &["batch"]);
        check(json!(""), &["", "batch"], &[""]);
        check(json!(""), &["batch", "example.com"], &[]);
        check(json!("batch"), &["batch", "example.com"], &["batch"]);
        check(json!("example.com"), &["batch"], &[]);
    }

    #[test]
    fn rules_may_be_about_an_object_whose_kind_nobody_knows() {
        let rules = json!([{"type": "CEL", "condition": "X"}]);
        let check = |identifier: Value, expected: bool| {
            let configs: Vec<ManifestConfig> = serde_json::from_value(
                json!([{"resourceIdentifier": identifier, "conditionRules": rules}]),
            )
            .unwrap();
            let objects = [object("n", "web")];
            let meta = ManifestResourceMeta {
                group: "zoo.example".into(),
                kind: "Bird".into(),
                name: "b".into(),
                namespace: "n".into(),
                ..ManifestResourceMeta::default()
            };
            let found = Configs::new(&configs, &objects).rules_of_unknown(&meta);
            assert_eq!(!found.is_empty(), expected, "{identifier}");
        };
        check(
            json!({"group": "zoo.example", "resource": "birds", "name": "b", "namespace": "n"}),
            true,
        );
        check(
            json!({"resource": "birds", "name": "*", "namespace": "n"}),
            true,
        );
        check(
            json!({"group": "zoo.example", "resource": "birds", "name": "c", "namespace": "n"}),
            false,
        );
        check(
            json!({"group": "apps", "resource": "birds", "name": "b", "namespace": "n"}),
            false,
        );
        check(
            json!({"resource": "deployments", "name": "*", "namespace": "n"}),
            false,
        );
    }

    #[test]
    fn objects_stay_as_the_work_says() {
        let check = |option: Value, expected: bool| {
            let spec: ManifestWorkSpec =
                serde_json::from_value(json!({"deleteOption": option})).unwrap();
            assert_eq!(is_owned(&spec, &object("n", "web")), expected, "{option}");
        };
        check(json!({"propagationPolicy": "Foreground"}), true);
        check(json!({"propagationPolicy": "Orphan"}), false);
        check(json!({"propagationPolicy": "SelectivelyOrphan"}), true);
        let rule = |name: &str| {
            json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [
                {"group": "apps", "resource": "deployments", "namespace": "n", "name": name}]}})
        };
        check(rule("web"), false);
        check(rule("*"), true);
        assert!(is_owned(&ManifestWorkSpec::default(), &object("n", "web")));
    }

    #[test]
    fn fields_are_kept_when_the_work_says_so() {
        let paths = ["spec.replicas".to_owned()];
        let list = BTreeMap::from([(
            annotation::KEEP_DELETED.to_owned(),
            "deployments.apps n/web".to_owned(),
        )]);
        for (affect, on_update, on_state_keep) in [
            (Affect::Always, true, true),
            (Affect::OnUpdate, true, false),
            (Affect::OnStateKeep, false, true),
        ] {
            let kept = FieldRetention {
                paths: paths.to_vec(),
                affect,
            };
            for (applied_before, holds) in [(false, on_update), (true, on_state_keep)] {
                let found = drift(None, Some(&kept), &object("n", "web"), applied_before);
                let expected = if holds {
                    Drift::KeepFields(&paths)
                } else {
                    Drift::Undo
                };
                assert_eq!(found, expected, "{affect:?} {applied_before}");
            }
        }
        let found = drift(Some(&list), None, &object("n", "web"), true);
        assert_eq!(found, Drift::KeepFields(&[]));
        let found = drift(Some(&list), None, &object("n", "other"), true);
        assert_eq!(found, Drift::Undo);
    }

    #[test]
    fn deletions_of_objects_that_the_work_names_are_kept() {
        let list = "deployments.apps shop/web, configmaps shop/settings";
        let annotations = BTreeMap::from([(annotation::KEEP_DELETED.to_owned(), list.to_owned())]);
        for (group, resource, name, expected) in [
            ("apps", "deployments", "web", true),
            ("", "configmaps", "settings", true),
            ("", "configmaps", "web", false),
            ("other", "deployments", "web", false),
        ] {
            let object = ObjectId {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            };
            assert_eq!(keeps_deleted(Some(&annotations), &object), expected);
            assert!(!keeps_deleted(None, &object));
        }
    }
}
