//! What rules ask about the hub. They are asked again until nothing is unknown.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bellwether_api::admission::{Attributes, Facts, ObjectId};
use kube::Client;
use serde_json::{Value, json};

/// A question whose answer has to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// May the sender do this?
    Allows {
        /// The verb in lower case.
        verb: String,
        /// API group.
        group: String,
        /// Plural name.
        resource: String,
        /// Subresource, or nothing.
        subresource: String,
        /// Name of the object, or nothing.
        name: String,
        /// Namespace, or nothing.
        namespace: String,
    },
    /// What is in the object at this path of the API?
    Get(String),
}

/// What is known so far.
#[derive(Debug, Default)]
pub struct KnownFacts {
    answers: BTreeMap<Question, Value>,
    open: RefCell<Vec<Question>>,
}

impl KnownFacts {
    /// Takes the questions that came up and have no answer.
    pub fn open(&mut self) -> Vec<Question> {
        std::mem::take(self.open.get_mut())
    }

    /// Takes in an answer: `true` or `false`, or an object or null.
    pub fn insert(&mut self, question: Question, answer: Value) {
        self.answers.insert(question, answer);
    }

    fn ask(&self, question: Question) -> Value {
        if let Some(answer) = self.answers.get(&question) {
            return answer.clone();
        }
        let mut open = self.open.borrow_mut();
        if !open.contains(&question) {
            open.push(question);
        }
        Value::Null
    }
}

impl Facts for KnownFacts {
    fn allows(&self, wanted: &Attributes<'_>) -> bool {
        let question = Question::Allows {
            verb: wanted.verb.to_owned(),
            group: wanted.group.to_owned(),
            resource: wanted.resource.to_owned(),
            subresource: wanted.subresource.to_owned(),
            name: wanted.name.to_owned(),
            namespace: wanted.namespace.to_owned(),
        };
        self.ask(question) == Value::Bool(true)
    }

    fn get(&self, id: &ObjectId<'_>) -> Option<Value> {
        let answer = self.ask(Question::Get(path(id)));
        (!answer.is_null()).then_some(answer)
    }
}

/// The path of an object in the API.
fn path(id: &ObjectId<'_>) -> String {
    let root = match id.group {
        "" => format!("/api/{}", id.version),
        group => format!("/apis/{group}/{}", id.version),
    };
    let namespace = match id.namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}{namespace}/{}/{}", id.resource, id.name)
}

/// True if every part of a path is a name: what comes from a request must not reach elsewhere.
fn is_plain(path: &str) -> bool {
    path.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/.-:_".contains(&byte))
        && !path.split('/').any(|part| part == "..")
}

/// Fetches an answer; `user` is the `userInfo` of the review.
pub async fn fetch(
    client: &Client,
    user: &Value,
    question: &Question,
) -> Result<Value, kube::Error> {
    match question {
        Question::Allows {
            verb,
            group,
            resource,
            subresource,
            name,
            namespace,
        } => {
            let attributes = json!({
                "verb": verb, "group": group, "resource": resource,
                "subresource": subresource, "name": name, "namespace": namespace,
            });
            let review = access_review(user, &attributes);
            let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(review.to_string().into_bytes())
                .map_err(kube::Error::HttpError)?;
            let answer: Value = client.request(request).await?;
            Ok(Value::Bool(answer["status"]["allowed"] == true))
        }
        // No object has such a name.
        Question::Get(path) if !is_plain(path) => Ok(Value::Null),
        Question::Get(path) => {
            let request = http::Request::get(path).body(Vec::new());
            let request = request.map_err(kube::Error::HttpError)?;
            match client.request(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
                answer => answer,
            }
        }
    }
}

fn access_review(user: &Value, attributes: &Value) -> Value {
    let mut spec = json!({"resourceAttributes": attributes, "user": user["username"]});
    for field in ["groups", "uid", "extra"] {
        if !user[field].is_null() {
            spec[field] = user[field].clone();
        }
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_once_and_then_known() {
        let mut known = KnownFacts::default();
        let wanted = Attributes {
            verb: "update",
            resource: "things",
            ..Attributes::default()
        };
        assert!(!known.allows(&wanted) && !known.allows(&wanted));
        let open = known.open();
        assert_eq!(open.len(), 1);
        known.insert(open[0].clone(), Value::Bool(true));
        assert!(known.allows(&wanted));
        assert!(known.open().is_empty());
    }

    #[test]
    fn objects_are_asked_for_by_their_paths() {
        let id = ObjectId {
            group: "",
            version: "v1",
            resource: "secrets",
            namespace: "kube-system",
            name: "bootstrap-token-a",
        };
        let expected = "/api/v1/namespaces/kube-system/secrets/bootstrap-token-a";
        assert_eq!(path(&id), expected);
        assert!(is_plain(expected));
        for path in [
            "/api/v1/../secrets",
            "/api/v1/namespaces/a?b",
            "/api/v1/ä",
            "/a b",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn a_review_of_access_names_the_whole_user() {
        let user = json!({"username": "ann", "groups": ["a"], "extra": {"k": ["v"]}});
        let review = access_review(&user, &json!({"verb": "get"}));
        assert_eq!(
            review["spec"],
            json!({
                "user": "ann", "groups": ["a"], "extra": {"k": ["v"]},
                "resourceAttributes": {"verb": "get"},
            })
        );
    }
}
