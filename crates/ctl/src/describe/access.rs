//! Service accounts, roles and bindings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::page::Page;
use super::read::{items, text};
use super::subject::Subject;

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

fn marks(subject: &Subject<'_>, page: &mut Page) {
    page.labels("Labels", &subject.metadata()["labels"]);
    page.annotations("Annotations", &subject.metadata()["annotations"]);
}

/// Describes a service account.
pub(super) fn service_account(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, object) = (subject.metadata(), subject.object);
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    marks(subject, page);
    let secrets = &subject.related.secrets;
    let is_own = |secret: &&Value| {
        let notes = &secret["metadata"]["annotations"];
        secret["type"] == ACCOUNT_TOKEN
            && notes[ACCOUNT_NAME] == metadata["name"]
            && notes[ACCOUNT_UID] == metadata["uid"]
    };
    let tokens: Vec<String> = secrets
        .iter()
        .filter(is_own)
        .map(|secret| text(&secret["metadata"]["name"]).to_owned())
        .collect();
    let is_there = |name: &str| {
        secrets
            .iter()
            .any(|secret| secret["metadata"]["name"] == name)
    };
    let listed = |list: &Value| -> Vec<String> {
        let names = items(list).iter().map(|found| text(&found["name"]));
        names
            .map(|name| {
                let note = if is_there(name) { "" } else { " (not found)" };
                format!("{name}{note}")
            })
            .collect()
    };
    for (label, names) in [
        ("Image pull secrets", listed(&object["imagePullSecrets"])),
        ("Mountable secrets", listed(&object["secrets"])),
        ("Tokens", tokens),
    ] {
        page.list(label, &names);
    }
}

/// Describes a role, of a namespace or of the cluster.
pub(super) fn role(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    marks(subject, page);
    page.line(0, "PolicyRule:");
    page.line(1, "Resources\tNon-Resource URLs\tResource Names\tVerbs");
    page.line(1, "---------\t-----------------\t--------------\t-----");
    for (rule, verbs) in compact(&subject.object["rules"]) {
        let list = |found: &Option<String>| found.clone().unwrap_or_default();
        let verbs = verbs.join(" ");
        let (paths, names) = (list(&rule.path), list(&rule.name));
        let resource = combined(&rule.resource, &rule.group);
        page.line(
            1,
            format_args!("{resource}\t[{paths}]\t[{names}]\t[{verbs}]"),
        );
    }
}

/// What a rule is about: one resource or path, and at most one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    group: String,
    resource: String,
    path: Option<String>,
    name: Option<String>,
}

/// One line for everything that a role is about, with its verbs in the order in which they were
/// given. Lines are in the order of what Go prints about them, verbs first, as kubectl has them.
fn compact(rules: &Value) -> Vec<(Rule, Vec<String>)> {
    let mut found: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for rule in items(rules) {
        for part in parts(rule) {
            let verbs = items(&rule["verbs"])
                .iter()
                .map(|verb| text(verb).to_owned());
            found.entry(part).or_default().extend(verbs);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(rule, verbs)| {
        let list = |value: &Option<String>| value.clone().unwrap_or_default();
        format!(
            "[{}],[{}],[{}],[{}],[{}]",
            verbs.join(" "),
            rule.group,
            rule.resource,
            list(&rule.name),
            list(&rule.path)
        )
    });
    found
}

fn parts(rule: &Value) -> BTreeSet<Rule> {
    let list = |name: &str| items(&rule[name]).iter().map(text).collect::<Vec<_>>();
    let names: Vec<Option<String>> = match list("resourceNames") {
        none if none.is_empty() => vec![None],
        names => names
            .into_iter()
            .map(|name| Some(name.to_owned()))
            .collect(),
    };
    let mut parts = BTreeSet::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            parts.extend(names.iter().map(|name| Rule {
                group: group.to_owned(),
                resource: resource.to_owned(),
                path: None,
                name: name.clone(),
            }));
        }
    }
    parts.extend(list("nonResourceURLs").into_iter().map(|path| Rule {
        group: String::new(),
        resource: String::new(),
        path: Some(path.to_owned()),
        name: None,
    }));
    parts
}

/// A resource with its group: `deployments.apps/scale`.
fn combined(resource: &str, group: &str) -> String {
    let (resource, part) = match resource.split_once('/') {
        Some((resource, part)) => (resource, format!("/{part}")),
        None => (resource, String::new()),
    };
    let group = match group {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("{resource}{group}{part}")
}

/// Describes a binding, of a namespace or of the cluster.
pub(super) fn binding(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    marks(subject, page);
    let role = &subject.object["roleRef"];
    page.line(0, "Role:");
    page.pair(1, "Kind", text(&role["kind"]));
    page.pair(1, "Name", text(&role["name"]));
    page.line(0, "Subjects:");
    page.line(1, "Kind\tName\tNamespace");
    page.line(1, "----\t----\t---------");
    for found in items(&subject.object["subjects"]) {
        let [kind, name, namespace] =
            ["kind", "name", "namespace"].map(|field| text(&found[field]));
        page.line(1, format_args!("{kind}\t{name}\t{namespace}"));
    }
}
