//! The audit log: one line for each request that may have changed something, in the form of
//! Kubernetes' audit events. Bodies are not in it, so that no secret is.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use http::request::Parts;
use http::{Method, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::access::Identity;
use crate::authenticate::{Authenticated, Caller};
use crate::metadata;
use crate::request::{ResourcePath, Verb};
use crate::status::ApiError;

/// Lines that wait to be written; beyond that, requests wait.
const BACKLOG: usize = 1_024;

/// Where lines go. Cheap to clone; all clones write to the same file.
#[derive(Debug, Clone)]
pub struct AuditLog {
    sender: mpsc::Sender<Message>,
    /// Whether requests that only read are written, too.
    reads: bool,
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// Everything before this is to be on its way to the disk.
    Flush(oneshot::Sender<()>),
}

impl AuditLog {
    /// Opens a log that only its owner reads; lines are added to what is there.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let thread = std::thread::Builder::new().name("audit".into());
        thread.spawn(move || write(file, receiver))?;
        Ok(Self {
            sender,
            reads: false,
        })
    }

    /// Writes requests that only read as well.
    #[must_use]
    pub fn with_reads(mut self) -> Self {
        self.reads = true;
        self
    }

    /// True if requests of that method are written.
    pub(crate) fn covers(&self, method: &Method) -> bool {
        self.reads || is_mutating(method)
    }

    /// Waits until everything so far is written.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }

    pub(crate) async fn write(&self, record: &Value) {
        let mut line = serde_json::to_vec(record).unwrap_or_default();
        line.push(b'\n');
        // The writer ends only with the process.
        let _ = self.sender.send(Message::Line(line)).await;
    }
}

fn write(mut file: std::fs::File, mut messages: mpsc::Receiver<Message>) {
    let mut failing = false;
    while let Some(message) = messages.blocking_recv() {
        let mut lines = Vec::new();
        let mut flushes = Vec::new();
        let mut next = Some(message);
        // Whatever has piled up goes in one write.
        while let Some(message) = next {
            match message {
                Message::Line(line) => lines.extend(line),
                Message::Flush(done) => flushes.push(done),
            }
            next = messages.try_recv().ok();
        }
        let result = file.write_all(&lines);
        if let Err(error) = &result
            && !failing
        {
            tracing::error!(%error, "cannot write the audit log; lines are lost");
        }
        failing = result.is_err();
        for done in flushes {
            let _ = done.send(());
        }
    }
}

/// Whether a method may change something.
fn is_mutating(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// What is known of a request so far.
#[derive(Debug)]
pub(crate) struct Record(Value);

impl Record {
    /// Begins with what the connection and the headers say.
    pub(crate) fn new(parts: &Parts, caller: &Caller, cluster: &str, now: Timestamp) -> Self {
        let agent = parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let mut record = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": metadata::new_uid(), "stage": "ResponseComplete",
            "requestURI": parts.uri.path_and_query().map_or("", |uri| uri.as_str()),
            "verb": parts.method.as_str().to_ascii_lowercase(),
            "user": {},
            "userAgent": agent.unwrap_or_default(),
            "requestReceivedTimestamp": micros(now),
            "annotations": {"bellwether.dev/cluster": cluster},
        });
        if let Some(address) = caller.address {
            record["sourceIPs"] = json!([address.to_string()]);
        }
        Self(record)
    }

    /// Who sent it.
    pub(crate) fn set_user(&mut self, known: &Authenticated) {
        let to_json = |identity: &Identity| identity.to_json();
        match &known.impersonator {
            Some(impersonator) => {
                self.0["user"] = to_json(impersonator);
                self.0["impersonatedUser"] = to_json(&known.identity);
            }
            None => self.0["user"] = to_json(&known.identity),
        }
    }

    /// What it is about.
    pub(crate) fn set_target(&mut self, target: &ResourcePath, verb: Verb) {
        self.0["verb"] = verb.as_str().into();
        let mut object = serde_json::Map::new();
        let fields = [
            ("resource", Some(&target.resource)),
            ("namespace", target.namespace.as_ref()),
            ("name", target.name.as_ref()),
            ("apiGroup", Some(&target.group)),
            ("apiVersion", Some(&target.version)),
            ("subresource", target.subresource.as_ref()),
        ];
        for (key, value) in fields {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                object.insert(key.to_owned(), value.as_str().into());
            }
        }
        self.0["objectRef"] = object.into();
    }

    /// The name that the server has given.
    pub(crate) fn set_name(&mut self, name: &str) {
        if self.0["objectRef"]["name"].is_null() && !name.is_empty() {
            self.0["objectRef"]["name"] = name.into();
        }
    }

    /// What admission noted.
    pub(crate) fn annotate(&mut self, notes: BTreeMap<String, String>) {
        for (key, note) in notes {
            self.0["annotations"][key] = note.into();
        }
    }

    /// Why it failed.
    pub(crate) fn set_error(&mut self, error: &ApiError) {
        self.0["responseStatus"] = json!({
            "metadata": {}, "status": "Failure", "reason": error.reason, "message": error.message,
        });
    }

    /// The whole line.
    pub(crate) fn finish(mut self, code: StatusCode, now: Timestamp) -> Value {
        if self.0["responseStatus"].is_null() {
            self.0["responseStatus"] = json!({"metadata": {}});
        }
        self.0["responseStatus"]["code"] = code.as_u16().into();
        self.0["stageTimestamp"] = micros(now).into();
        self.0
    }
}

fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}
