//! Groups that belong to Kubernetes: who defines a kind there has to say who approved it.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const POLICY: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    Invalid,
    Approved,
    Bypassed,
}

/// Whether a group is reserved for the Kubernetes project.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

fn group(definition: &Value) -> &str {
    definition["spec"]["group"].as_str().unwrap_or_default()
}

fn annotation(definition: &Value) -> &str {
    let annotations = &definition["metadata"]["annotations"];
    annotations[ANNOTATION].as_str().unwrap_or_default()
}

/// What a definition says of its approval, and the same in words.
fn approval(definition: &Value) -> (Approval, String) {
    match annotation(definition) {
        "" => (
            Approval::Missing,
            format!("protected groups must have approval annotation \"{ANNOTATION}\", {POLICY}"),
        ),
        text if text.starts_with("unapproved") => {
            (Approval::Bypassed, format!("not approved: \"{text}\""))
        }
        text if is_url(text) => (Approval::Approved, format!("approved in {text}")),
        _ => (
            Approval::Invalid,
            format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting with \"unapproved\", {POLICY}"
            ),
        ),
    }
}

/// Whether a text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    let url = text.parse::<http::Uri>();
    url.is_ok_and(|url| url.scheme().is_some() && url.host().is_some_and(|host| !host.is_empty()))
}

/// Refuses a definition in a reserved group that nobody approved; one that was accepted before stays
/// as it is.
pub(super) fn validate(definition: &Value, live: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !is_protected(group(definition)) {
        return;
    }
    let (now, reason) = approval(definition);
    if live.is_some_and(|live| approval(live).0 == now) {
        return;
    }
    let path = FieldPath::new("metadata");
    let path = path.child("annotations");
    let path = path.key(ANNOTATION);
    match now {
        Approval::Missing => errors.push(FieldError::required(&path, reason)),
        Approval::Invalid => {
            errors.push(FieldError::invalid(&path, annotation(definition), reason));
        }
        Approval::Approved | Approval::Bypassed => {}
    }
}

/// Status, reason and message of the condition that tells of the approval; none for groups that
/// need none.
pub(super) fn condition(definition: &Value) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(group(definition)) {
        return None;
    }
    let (approval, message) = approval(definition);
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    Some((status, reason, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(group: &str, annotation: &str, refused: bool, reason: Option<&str>) {
        let definition = json!({
            "metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group},
        });
        let mut errors = Vec::new();
        validate(&definition, None, &mut errors);
        assert_eq!(!errors.is_empty(), refused, "{group} {annotation}");
        let found = condition(&definition).map(|(_, reason, _)| reason);
        assert_eq!(found, reason, "{group} {annotation}");
    }

    #[test]
    fn groups_of_kubernetes_need_an_approval() {
        check("example.com", "", false, None);
        check("multicluster.x-k8s.io", "", false, None);
        check("k8s.io", "", true, Some("MissingAnnotation"));
        check("about.k8s.io", "", true, Some("MissingAnnotation"));
        check("a.kubernetes.io", "yes", true, Some("InvalidAnnotation"));
        let url = "https://github.com/kubernetes/enhancements/pull/1111";
        check("a.k8s.io", url, false, Some("ApprovedAnnotation"));
        let reason = Some("UnapprovedAnnotation");
        check("a.k8s.io", "unapproved, experimental", false, reason);
    }

    #[test]
    fn a_definition_that_was_accepted_can_still_be_changed() {
        let definition = json!({"metadata": {}, "spec": {"group": "a.k8s.io"}});
        let mut errors = Vec::new();
        validate(&definition, Some(&definition), &mut errors);
        assert_eq!(errors, []);
    }
}
