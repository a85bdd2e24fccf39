//! Wakes workflows whose steps wait for objects that changed.
//!
//! One watch a kind and cluster, while any step waits for an object of it. What a step saw last is remembered, so that
//! what is listed again wakes nobody.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_runtime::{FeedEvent, ObjectKey, Selection, follow, spawn_vital};
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::task::AbortHandle;

/// An object that a step looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Looked {
    /// Where objects of its kind are, such as `/api/v1/configmaps`.
    pub path: String,
    /// Namespace and name; without a name all objects of the namespace, without both all.
    pub object: ObjectKey,
    /// The version that was seen; none if there was no such object.
    pub version: Option<String>,
}

/// Who is woken: a workflow and one of its steps.
type Waiter<K> = (K, String);

/// Wakes a workflow, and says which step waited.
type Wake<K> = Arc<dyn Fn(&K, &str) + Send + Sync>;

/// The objects that steps wait for. Cheap to clone.
#[derive(Clone)]
pub struct Watches<K> {
    client: Client,
    inner: Arc<Mutex<Inner<K>>>,
    wake: Wake<K>,
}

impl<K> std::fmt::Debug for Watches<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watches").finish_non_exhaustive()
    }
}

/// That a step waits for an object.
struct Wait {
    step: String,
    path: String,
    object: ObjectKey,
}

struct Inner<K> {
    /// By path of the kind.
    kinds: HashMap<String, Kind<K>>,
    /// What each workflow waits for.
    by_workflow: BTreeMap<K, Vec<Wait>>,
}

impl<K: Clone + Ord> Inner<K> {
    fn end(&mut self, workflow: &K, wait: Wait) {
        if let Some(kind) = self.kinds.get_mut(&wait.path)
            && let Some(waiters) = kind.waiters.get_mut(&wait.object)
        {
            waiters.remove(&(workflow.clone(), wait.step));
            if waiters.is_empty() {
                kind.waiters.remove(&wait.object);
            }
        }
    }
}

struct Kind<K> {
    task: AbortHandle,
    waiters: BTreeMap<ObjectKey, BTreeMap<Waiter<K>, Option<String>>>,
}

impl<K> Drop for Kind<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
}

impl<K: Clone + Ord + Send + Sync + 'static> Watches<K> {
    /// Watches with a client, and calls back with the workflow and step that wait for what changed.
    pub fn new(client: &Client, wake: impl Fn(&K, &str) + Send + Sync + 'static) -> Self {
        Self {
            client: client.clone(),
            inner: Arc::new(Mutex::new(Inner {
                kinds: HashMap::new(),
                by_workflow: BTreeMap::new(),
            })),
            wake: Arc::new(wake),
        }
    }

    /// Says what steps of a workflow wait for from now on. Other steps wait on for what they waited for while they are
    /// open: a pass may look at some of the steps only.
    pub fn wait_for(
        &self,
        workflow: &K,
        steps: &BTreeMap<String, Vec<Looked>>,
        is_open: impl Fn(&str) -> bool,
    ) {
        let mut inner = self.inner.lock();
        let before = inner.by_workflow.remove(workflow).unwrap_or_default();
        let (mut waits, over): (Vec<Wait>, Vec<Wait>) = before
            .into_iter()
            .partition(|wait| !steps.contains_key(&wait.step) && is_open(&wait.step));
        for wait in over {
            inner.end(workflow, wait);
        }
        for (step, looked) in steps {
            for looked in looked {
                waits.push(Wait {
                    step: step.clone(),
                    path: looked.path.clone(),
                    object: looked.object.clone(),
                });
                let kind = inner
                    .kinds
                    .entry(looked.path.clone())
                    .or_insert_with(|| Kind {
                        task: self.start(looked.path.clone()),
                        waiters: BTreeMap::new(),
                    });
                let waiters = kind.waiters.entry(looked.object.clone()).or_default();
                waiters.insert((workflow.clone(), step.clone()), looked.version.clone());
            }
        }
        if !waits.is_empty() {
            inner.by_workflow.insert(workflow.clone(), waits);
        }
        inner.kinds.retain(|_, kind| !kind.waiters.is_empty());
    }

    /// A workflow waits for nothing any more.
    pub fn forget(&self, workflow: &K) {
        self.wait_for(workflow, &BTreeMap::new(), |_| false);
    }

    fn start(&self, path: String) -> AbortHandle {
        let watches = self.clone();
        let task = spawn_vital(format!("watch of {path}"), async move {
            let selection = Selection::default();
            let mut listed: BTreeSet<ObjectKey> = BTreeSet::new();
            let name = path.clone();
            follow(
                watches.client.clone(),
                &path,
                &selection,
                &mut |event| match event {
                    FeedEvent::ListStarted => listed.clear(),
                    FeedEvent::Listed(text) => listed.extend(watches.changed(&name, text, false)),
                    FeedEvent::Applied(text) => {
                        watches.changed(&name, text, false);
                    }
                    FeedEvent::Deleted(text) => {
                        watches.changed(&name, text, true);
                    }
                    FeedEvent::ListDone(_) => watches.gone(&name, &listed),
                    FeedEvent::Disconnected(_) => {}
                },
            )
            .await;
        });
        task.abort_handle()
    }

    /// Wakes those who wait for an object and saw another version of it.
    fn changed(&self, path: &str, text: &str, is_deleted: bool) -> Option<ObjectKey> {
        let object: Object = serde_json::from_str(text).ok()?;
        let key = ObjectKey::new(&object.metadata.namespace, &object.metadata.name);
        let version = (!is_deleted).then_some(object.metadata.resource_version);
        let all = ObjectKey::new(&key.namespace, "");
        let everywhere = ObjectKey::new("", "");
        let mut woken = Vec::new();
        {
            let mut inner = self.inner.lock();
            let kind = inner.kinds.get_mut(path)?;
            for (target, is_list) in [(&key, false), (&all, true), (&everywhere, true)] {
                for (waiter, seen) in kind.waiters.get_mut(target).into_iter().flatten() {
                    let is_new = if is_list {
                        is_later(version.as_deref(), seen.as_deref()) || is_deleted
                    } else {
                        *seen != version
                    };
                    if is_new {
                        if !is_list {
                            seen.clone_from(&version);
                        }
                        woken.push(waiter.clone());
                    }
                }
            }
        }
        for (workflow, step) in woken {
            (self.wake)(&workflow, &step);
        }
        Some(key)
    }

    /// Wakes those who wait for objects that a list does not have any more.
    fn gone(&self, path: &str, listed: &BTreeSet<ObjectKey>) {
        let mut woken = Vec::new();
        if let Some(kind) = self.inner.lock().kinds.get_mut(path) {
            for (object, waiters) in &mut kind.waiters {
                if object.name.is_empty() || listed.contains(object) {
                    continue;
                }
                for (waiter, seen) in waiters {
                    if seen.take().is_some() {
                        woken.push(waiter.clone());
                    }
                }
            }
        }
        for (workflow, step) in woken {
            (self.wake)(&workflow, &step);
        }
    }
}

/// Whether a version of an object is later than that of a list. Versions that are no numbers are.
fn is_later(version: Option<&str>, list: Option<&str>) -> bool {
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    match (number(version), number(list)) {
        (Some(version), Some(list)) => version > list,
        _ => true,
    }
}
