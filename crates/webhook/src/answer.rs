//! An AdmissionReview in, an AdmissionReview out.

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_api::admission::{Admission, Denial, Facts, Operation, Review, rules_match};
use bellwether_patch::json_patch;
use jiff::Timestamp;
use serde_json::{Value, json};

/// What a webhook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// It completes objects.
    Mutate,
    /// It checks objects.
    Validate,
}

/// Why a review has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// It is not an AdmissionReview with a request.
    #[error("the body is not an AdmissionReview of the version v1 with a request")]
    NoReview,
    /// Nobody knows what it does.
    #[error("the request does not name an operation that is known")]
    NoOperation,
}

/// Answers a review by the rules of an admission. If `facts` are not complete, neither is the answer.
pub fn answer(
    admission: &dyn Admission,
    task: Task,
    body: &Value,
    facts: &dyn Facts,
    now: Timestamp,
) -> Result<Value, ReviewError> {
    let request = &body["request"];
    let is_review =
        body["kind"] == "AdmissionReview" && body["apiVersion"] == "admission.k8s.io/v1";
    if !is_review || !request["uid"].is_string() {
        return Err(ReviewError::NoReview);
    }
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let operation = request["operation"].as_str().and_then(Operation::parse);
    let operation = operation.ok_or(ReviewError::NoOperation)?;
    let groups: Vec<String> = request["userInfo"]["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .map(text)
        .collect();
    let old = Some(&request["oldObject"]).filter(|old| old.is_object());
    let field = |value: &'static str| request[value].as_str().unwrap_or_default();
    let review = Review {
        operation,
        group: request["resource"]["group"].as_str().unwrap_or_default(),
        resource: request["resource"]["resource"].as_str().unwrap_or_default(),
        subresource: field("subResource"),
        namespace: field("namespace"),
        old,
        user: request["userInfo"]["username"].as_str().unwrap_or_default(),
        groups: &groups,
        is_strict: request["options"]["fieldValidation"] == "Strict",
        now,
        facts,
        warnings: RefCell::default(),
    };
    let mut response = json!({"uid": request["uid"], "allowed": true});
    let rules = match task {
        Task::Mutate => admission.mutations(),
        Task::Validate => admission.rules(),
    };
    if rules_match(rules, &review) {
        let object = match operation {
            Operation::Delete => &request["oldObject"],
            _ => &request["object"],
        };
        match run(admission, task, &review, object) {
            Ok(None) => {}
            Ok(Some(patch)) => {
                response["patchType"] = "JSONPatch".into();
                response["patch"] = BASE64.encode(patch.to_string()).into();
            }
            Err(denial) => {
                response["allowed"] = false.into();
                response["status"] = status(&denial);
            }
        }
    }
    let warnings = review.warnings.into_inner();
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    Ok(json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response,
    }))
}

/// Runs the rules; the result is a JSON patch if they change the object.
fn run(
    admission: &dyn Admission,
    task: Task,
    review: &Review<'_>,
    object: &Value,
) -> Result<Option<Value>, Denial> {
    match task {
        Task::Validate => admission.validate(review, object).map(|()| None),
        Task::Mutate => {
            let mut changed = object.clone();
            admission.mutate(review, &mut changed)?;
            Ok((changed != *object).then(|| json_patch::diff(object, &changed)))
        }
    }
}

fn status(denial: &Denial) -> Value {
    let (code, reason) = match denial {
        Denial::BadRequest(_) => (400, "BadRequest"),
        Denial::Forbidden(_) => (403, "Forbidden"),
    };
    json!({"status": "Failure", "code": code, "reason": reason, "message": denial.message()})
}

#[cfg(test)]
mod tests {
    use bellwether_placement::admission::FleetAdmission;

    use super::*;
    use crate::facts::KnownFacts;

    fn review(object: &Value, old: &Value) -> Value {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        json!({
            "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": "u", "operation": operation, "object": object, "oldObject": old,
                "resource": {
                    "group": "cluster.open-cluster-management.io", "version": "v1",
                    "resource": "managedclusters",
                },
                "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
            },
        })
    }

    /// Answers with every right, or with none.
    fn decide(task: Task, body: &Value, may: bool) -> Value {
        let mut known = KnownFacts::default();
        loop {
            let found = answer(&FleetAdmission, task, body, &known, Timestamp::UNIX_EPOCH);
            let open = known.open();
            if open.is_empty() {
                return found.unwrap()["response"].clone();
            }
            for question in open {
                let reply = match question {
                    crate::facts::Question::Allows { .. } => Value::Bool(may),
                    crate::facts::Question::Get(_) => Value::Null,
                };
                known.insert(question, reply);
            }
        }
    }

    #[test]
    fn accepting_a_cluster_takes_a_right() {
        let waiting = json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": false}});
        let accepted = json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true}});
        let body = review(&accepted, &waiting);
        assert_eq!(decide(Task::Validate, &body, true)["allowed"], true);
        let refused = decide(Task::Validate, &body, false);
        assert_eq!(refused["allowed"], false);
        assert_eq!(refused["status"]["code"], 403);
        assert_eq!(
            refused["status"]["message"],
            "not permitted to accept the cluster: User \"ann\" cannot update resource \
             \"managedclusters/accept\" in API group \"register.open-cluster-management.io\" at the \
             cluster scope"
        );
    }

    #[test]
    fn a_new_cluster_is_put_into_the_default_set() {
        let cluster = json!({"metadata": {"name": "c1"}, "spec": {}});
        let response = decide(Task::Mutate, &review(&cluster, &Value::Null), false);
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = BASE64.decode(response["patch"].as_str().unwrap()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        assert_eq!(patch[0]["op"], "add");
        assert_eq!(patch[0]["path"], "/metadata/labels");
        let unchanged = json!({"metadata": {"name": "c1", "labels": {
            "cluster.open-cluster-management.io/clusterset": "default",
        }}});
        let response = decide(Task::Mutate, &review(&unchanged, &Value::Null), false);
        assert_eq!(response, json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let known = KnownFacts::default();
        let mut body = review(&json!({}), &Value::Null);
        body["request"]["operation"] = "EXPLODE".into();
        let check = |body: &Value, expected: ReviewError| {
            let now = Timestamp::UNIX_EPOCH;
            let found = answer(&FleetAdmission, Task::Validate, body, &known, now);
            assert_eq!(found, Err(expected));
        };
        check(&body, ReviewError::NoOperation);
        check(&json!({}), ReviewError::NoReview);
        check(&Value::Null, ReviewError::NoReview);
    }
}
