//! Templates of Gatekeeper: what is different about them, and what they report.
//!
//! A ConstraintTemplate defines a kind of constraint. Both belong to no namespace, so that they are known to be part of
//! a policy by their label alone. A constraint says by its last audit what violates it.

use bellwether_api::policy::names::gatekeeper;
use serde_json::Value;

/// What of Gatekeeper a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gatekeeper {
    /// It defines a kind of constraint.
    Template,
    /// It is a constraint.
    Constraint,
}

impl Gatekeeper {
    /// What of Gatekeeper objects of a group and version are, if they are of it.
    pub fn of(api_version: &str) -> Option<Self> {
        match api_version.split_once('/')?.0 {
            gatekeeper::TEMPLATES => Some(Self::Template),
            gatekeeper::CONSTRAINTS => Some(Self::Constraint),
            _ => None,
        }
    }
}

/// What a constraint does where its policy has this action; nothing if the policy leaves it as it is.
pub(super) fn enforcement(action: &str) -> Option<&'static str> {
    if action.eq_ignore_ascii_case("enforce") {
        Some(gatekeeper::DENY)
    } else if action.eq_ignore_ascii_case("inform") {
        Some(gatekeeper::WARN)
    } else {
        None
    }
}

/// What the last audit of a constraint found; nothing if there was none.
pub fn audit_of(constraint: &Value) -> Option<String> {
    let status = &constraint["status"];
    status["totalViolations"].as_i64()?;
    let violations = match &status["violations"] {
        Value::Null => &[][..],
        Value::Array(violations) => violations,
        _ => return Some("NonCompliant; The constraint status is invalid".to_owned()),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found: Vec<String> = violations
        .iter()
        .filter(|violation| violation.is_object())
        .map(|violation| {
            let name = match violation["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{}", text(&violation["name"])),
                None => text(&violation["name"]),
            };
            format!(
                "{} - {} (on {} {name})",
                text(&violation["enforcementAction"]),
                text(&violation["message"]),
                text(&violation["kind"]),
            )
        })
        .collect();
    Some(if found.is_empty() {
        "Compliant; The constraint has no violations".to_owned()
    } else {
        format!("NonCompliant; {}", found.join("; "))
    })
}

/// The state of compliance that others depend on; empty if it is not known. A ConstraintTemplate complies if it is
/// there, a constraint if its audit found nothing.
pub fn state_of(api_version: &str, object: Option<&Value>) -> String {
    let state = match (Gatekeeper::of(api_version), object) {
        (Some(Gatekeeper::Template), Some(_)) => "Compliant",
        (Some(Gatekeeper::Template), None) => "NonCompliant",
        (Some(Gatekeeper::Constraint), Some(object)) => {
            match object["status"]["totalViolations"].as_i64() {
                Some(0) => "Compliant",
                Some(_) => "NonCompliant",
                None => "",
            }
        }
        (None, Some(object)) => object["status"]["compliant"].as_str().unwrap_or_default(),
        (_, None) => "",
    };
    state.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_audit_names_what_violates_the_constraint() {
        let status = |status: Value| audit_of(&json!({ "status": status }));
        assert_eq!(status(json!({})), None);
        assert_eq!(
            status(json!({"totalViolations": 0})).as_deref(),
            Some("Compliant; The constraint has no violations")
        );
        let one = json!({"enforcementAction": "warn", "kind": "ConfigMap", "message": "no label",
            "name": "a", "namespace": "default"});
        let two = json!({"enforcementAction": "warn", "kind": "Namespace", "message": "no label",
            "name": "b"});
        assert_eq!(
            status(json!({"totalViolations": 2, "violations": [one, two, 3]})).as_deref(),
            Some(
                "NonCompliant; warn - no label (on ConfigMap default/a); warn - no label (on Namespace b)"
            )
        );
        assert_eq!(
            status(json!({"totalViolations": 2, "violations": "none"})).as_deref(),
            Some("NonCompliant; The constraint status is invalid")
        );
    }

    #[test]
    fn others_depend_on_existence_and_on_audits() {
        let template = "templates.gatekeeper.sh/v1";
        let constraint = "constraints.gatekeeper.sh/v1beta1";
        let audited = |count: i64| json!({"status": {"totalViolations": count}});
        assert_eq!(state_of(template, Some(&json!({}))), "Compliant");
        assert_eq!(state_of(template, None), "NonCompliant");
        assert_eq!(state_of(constraint, Some(&audited(0))), "Compliant");
        assert_eq!(state_of(constraint, Some(&audited(2))), "NonCompliant");
        assert_eq!(state_of(constraint, Some(&json!({}))), "");
        assert_eq!(state_of(constraint, None), "");
        let other = json!({"status": {"compliant": "Pending"}});
        assert_eq!(state_of("v1", Some(&other)), "Pending");
    }
}
