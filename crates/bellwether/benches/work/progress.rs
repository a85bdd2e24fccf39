//! How far works are, followed by a watch: looking again and again would cost more than the works.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long anything may take.
const BENCH_TIMEOUT: Duration = Duration::from_mins(10);

/// Changes of all works.
const WORKS: &str =
    "/apis/work.open-cluster-management.io/v1/manifestworks?watch=true&timeoutSeconds=3600";

/// As much of a work as is asked for.
#[derive(Deserialize)]
struct Work {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    generation: Option<i64>,
    resource_version: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    resource_status: ResourceStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: String,
    status: String,
    observed_generation: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResourceStatus {
    manifests: Vec<Manifest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    status_feedback: Feedback,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Feedback {
    values: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Value {
    field_value: FieldValue,
}

#[derive(Deserialize)]
struct FieldValue {
    string: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    object: Work,
}

#[derive(Default)]
struct Seen {
    /// Whether each work is applied as it is, and the value that came back.
    works: HashMap<(String, String), (bool, Option<String>)>,
    applied: usize,
}

/// How far all works of a hub are.
pub(crate) struct Progress {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Progress {
    /// Follows a hub that has no works yet.
    pub(crate) fn follow(hub: Client) -> Self {
        let (seen, changed) = (Arc::<Mutex<Seen>>::default(), Arc::<Notify>::default());
        let (to, tell) = (Arc::clone(&seen), Arc::clone(&changed));
        let task = tokio::spawn(async move {
            let mut version = "0".to_owned();
            // A server may end a watch whenever it likes.
            loop {
                let request = http::Request::get(format!("{WORKS}&resourceVersion={version}"));
                let request = request.header("accept-encoding", "identity");
                let stream = hub.request_stream(request.body(Vec::new()).unwrap()).await;
                let stream = std::pin::pin!(stream.unwrap());
                let mut lines = stream.lines();
                while let Some(Ok(line)) = lines.next().await {
                    let line: Line = serde_json::from_str(&line).unwrap();
                    version.clone_from(&line.object.metadata.resource_version);
                    to.lock().take(line);
                    tell.notify_one();
                }
            }
        });
        Self {
            seen,
            changed,
            task,
        }
    }

    pub(crate) async fn until_applied(&self, count: usize) {
        self.until(|seen| seen.works.len() == count && seen.applied == count)
            .await;
    }

    pub(crate) async fn until_gone(&self) {
        self.until(|seen| seen.works.is_empty()).await;
    }

    pub(crate) async fn until_told(&self, name: &str, value: &str) {
        let key = ("cluster1".to_owned(), name.to_owned());
        self.until(|seen| {
            let work = seen.works.get(&key);
            work.is_some_and(|(_, told)| told.as_deref() == Some(value))
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&Seen) -> bool) {
        let wait = async {
            while !holds(&self.seen.lock()) {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(BENCH_TIMEOUT, wait).await.unwrap();
    }
}

impl Seen {
    fn take(&mut self, line: Line) {
        let Work { metadata, status } = line.object;
        let key = (metadata.namespace, metadata.name);
        let is_applied = status.conditions.iter().any(|it| {
            it.r#type == "Applied"
                && it.status == "True"
                && it.observed_generation == metadata.generation
        });
        let mut manifests = status.resource_status.manifests.into_iter();
        let values = manifests.next().map(|it| it.status_feedback.values);
        let value = values.and_then(|values| values.into_iter().next());
        let told = value.and_then(|value| value.field_value.string);
        let before = if line.r#type == "DELETED" {
            self.works.remove(&key)
        } else {
            self.applied += usize::from(is_applied);
            self.works.insert(key, (is_applied, told))
        };
        self.applied -= usize::from(before.is_some_and(|(is_applied, _)| is_applied));
    }
}
