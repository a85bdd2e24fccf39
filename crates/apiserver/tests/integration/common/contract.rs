//! Questions that are put to our server and to a real kube-apiserver.

use bellwether_apiserver::HUB;
use bellwether_testkit::{Assets, RealCluster};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{TestServer, eventually};

/// A request, and as whom the administrator sends it.
pub struct Question {
    pub method: &'static str,
    pub path: String,
    pub body: Value,
    pub headers: Vec<(&'static str, &'static str)>,
    /// The content type, if it is not the usual one of the method.
    pub kind: Option<&'static str>,
    /// The parts of an object in the answer that have to be the same.
    pub shown: Vec<&'static str>,
}

impl Question {
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sends the body as another kind of patch.
    pub fn by(mut self, kind: &'static str) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Compares these parts of the object in the answer.
    pub fn showing(mut self, pointers: &[&'static str]) -> Self {
        self.shown = pointers.to_vec();
        self
    }
}

/// What the administrator asks.
pub fn root(method: &'static str, path: impl Into<String>, body: Value) -> Question {
    Question {
        method,
        path: path.into(),
        body,
        headers: Vec::new(),
        kind: None,
        shown: Vec::new(),
    }
}

/// Both servers; none where there is no real one at hand.
pub async fn both() -> Option<(RealCluster, kube::Client, TestServer, kube::Client)> {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return None;
        }
    };
    let real = RealCluster::start(&assets).await.unwrap();
    let theirs = real.client().await.unwrap();
    let server = TestServer::start().await;
    let ours = server.local(HUB);
    Some((real, theirs, server, ours))
}

/// The answer: code, warnings, body.
pub async fn ask(client: &kube::Client, question: &Question) -> (u16, Vec<String>, Value) {
    let kind = question.kind.unwrap_or(match question.method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    });
    let mut request = http::Request::builder()
        .method(question.method)
        .uri(&question.path)
        .header("content-type", kind)
        .header("user-agent", "test/1");
    for (name, value) in &question.headers {
        request = request.header(*name, *value);
    }
    let body = if question.body.is_null() {
        Vec::new()
    } else {
        serde_json::to_vec(&question.body).unwrap()
    };
    let response = client
        .send(request.body(body.into()).unwrap())
        .await
        .unwrap();
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings
        .map(|value| value.to_str().unwrap_or_default().to_owned())
        .collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    (code, warnings, body)
}

/// Asks until the answer has this at a pointer.
pub async fn until(client: &kube::Client, path: &str, pointer: &str, wanted: &Value) {
    let question = root("GET", path, Value::Null);
    eventually(path, || async {
        let (_, _, body) = ask(client, &question).await;
        (body.pointer(pointer) == Some(wanted)).then_some(())
    })
    .await;
}

/// The part of an answer that has to be the same.
pub fn essence(question: &Question, (code, warnings, body): (u16, Vec<String>, Value)) -> Value {
    if body["kind"] == "Status" {
        return json!([code, body["reason"], body["message"], body["details"]]);
    }
    if !question.shown.is_empty() {
        let shown = question.shown.iter().map(|pointer| body.pointer(pointer));
        return json!([code, warnings, shown.collect::<Vec<_>>()]);
    }
    // Which of several bindings allows something, and who the administrator is, may differ.
    json!([
        code,
        body["kind"],
        body["status"]["allowed"],
        body["status"]["error"]
    ])
}

/// Puts questions to both, one after the other, and returns what was answered differently.
pub async fn compare(
    theirs: &kube::Client,
    ours: &kube::Client,
    questions: &[Question],
) -> Vec<String> {
    let mut different = Vec::new();
    for question in questions {
        let expected = essence(question, ask(theirs, question).await);
        let found = essence(question, ask(ours, question).await);
        if found != expected {
            let Question {
                method, path, body, ..
            } = question;
            let [body, expected, found] = [body, &expected, &found].map(beginning);
            different.push(format!(
                "{method} {path} {body}\n  real {expected}\n  ours {found}"
            ));
        }
    }
    different
}

/// As much of a value as fits into a message.
fn beginning(value: &Value) -> String {
    value.to_string().chars().take(2_000).collect()
}
