//! What works depend on besides their objects: namespaces that are missing, and definitions of custom
//! kinds. A work is reconciled as soon as one of them appears, changes or goes.
//!
//! Namespaces are watched while a work waits for one, definitions while a work has custom resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_runtime::{
    ClusterHandle, Discovery, FeedEvent, Queue, Selection, follow, spawn_vital,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::AbortHandle;

use super::WorkKey;

const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Groups whose names look like those of custom kinds, and that every server has.
const BUILT_IN_GROUPS: [&str; 15] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// What one work depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// Namespaces that it waits for.
    namespaces: BTreeSet<String>,
    /// Group and kind of its custom resources.
    kinds: BTreeSet<(String, String)>,
}

impl Dependencies {
    /// Adds a namespace that is missing.
    pub(super) fn add_namespace(&mut self, namespace: &str) {
        self.namespaces.insert(namespace.to_owned());
    }

    /// Adds a kind, if it may be a custom one.
    pub(super) fn add_kind(&mut self, group: &str, kind: &str) {
        if group.contains('.') && !BUILT_IN_GROUPS.contains(&group) {
            self.kinds.insert((group.to_owned(), kind.to_owned()));
        }
    }
}

/// A task that follows one kind; it ends when this is dropped.
pub(super) struct Feed(AbortHandle);

impl Feed {
    /// Follows the objects at a path.
    pub(super) fn start(
        cluster: &ClusterHandle,
        path: &'static str,
        mut on_event: impl FnMut(&FeedEvent<'_>) + Send + 'static,
    ) -> Self {
        let cluster = cluster.clone();
        let task = spawn_vital(format!("watch of {path}"), async move {
            let selection = Selection::default();
            follow(cluster, path, &selection, &mut |event| on_event(&event)).await;
        });
        Self(task.abort_handle())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The dependencies of all works of one member.
pub(super) struct Arrivals {
    cluster: ClusterHandle,
    queue: Queue<WorkKey>,
    discovery: Arc<Discovery>,
    works: Arc<Mutex<BTreeMap<WorkKey, Dependencies>>>,
    feeds: Mutex<Feeds>,
}

#[derive(Default)]
struct Feeds {
    namespaces: Option<Feed>,
    definitions: Option<Feed>,
}

impl Arrivals {
    pub(super) fn new(
        cluster: ClusterHandle,
        queue: Queue<WorkKey>,
        discovery: Arc<Discovery>,
    ) -> Self {
        Self {
            cluster,
            queue,
            discovery,
            works: Arc::default(),
            feeds: Mutex::default(),
        }
    }

    /// Replaces what a work depends on.
    pub(super) fn set(&self, work: &WorkKey, dependencies: Dependencies) {
        let mut works = self.works.lock();
        if dependencies == Dependencies::default() {
            if works.remove(work).is_none() {
                return;
            }
        } else {
            works.insert(work.clone(), dependencies);
        }
        let any = |has: fn(&Dependencies) -> bool| works.values().any(has);
        let needs_namespaces = any(|it| !it.namespaces.is_empty());
        let needs_definitions = any(|it| !it.kinds.is_empty());
        drop(works);
        let mut feeds = self.feeds.lock();
        if !needs_namespaces {
            feeds.namespaces = None;
        } else if feeds.namespaces.is_none() {
            feeds.namespaces = Some(self.follow_namespaces());
        }
        if !needs_definitions {
            feeds.definitions = None;
        } else if feeds.definitions.is_none() {
            feeds.definitions = Some(self.follow_definitions());
        }
    }

    /// A work is gone.
    pub(super) fn forget(&self, work: &WorkKey) {
        self.set(work, Dependencies::default());
    }

    fn follow_namespaces(&self) -> Feed {
        let (works, queue) = (Arc::clone(&self.works), self.queue.clone());
        Feed::start(&self.cluster, NAMESPACES, move |event| {
            // What was there when the watch began is found by the first attempts again.
            let FeedEvent::Applied(text) = event else {
                return;
            };
            let Ok(namespace) = serde_json::from_str::<Value>(text) else {
                return;
            };
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            if namespace["metadata"]["deletionTimestamp"].is_null() {
                notify(&works, &queue, |it| it.namespaces.contains(name));
            }
        })
    }

    fn follow_definitions(&self) -> Feed {
        let (works, queue) = (Arc::clone(&self.works), self.queue.clone());
        let discovery = Arc::clone(&self.discovery);
        let mut seen = SeenDefinitions::default();
        Feed::start(&self.cluster, DEFINITIONS, move |event| {
            for changed in seen.take(event) {
                for version in &changed.versions {
                    discovery.forget(&changed.group, version);
                }
                let kind = (changed.group, changed.kind);
                notify(&works, &queue, |it| it.kinds.contains(&kind));
            }
        })
    }
}

/// Has the works reconciled that wait for one of these dependencies.
fn notify(
    works: &Mutex<BTreeMap<WorkKey, Dependencies>>,
    queue: &Queue<WorkKey>,
    is_concerned: impl Fn(&Dependencies) -> bool,
) {
    for (work, dependencies) in works.lock().iter() {
        if is_concerned(dependencies) {
            queue.renew(work.clone());
        }
    }
}

/// What matters of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Definition {
    group: String,
    kind: String,
    versions: Vec<String>,
    generation: i64,
    is_established: bool,
    is_deleting: bool,
}

impl Definition {
    fn read(text: &str) -> Option<(String, Self)> {
        let object: Value = serde_json::from_str(text).ok()?;
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let versions = object["spec"]["versions"].as_array().into_iter().flatten();
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let definition = Self {
            group: text("/spec/group")?.to_owned(),
            kind: text("/spec/names/kind")?.to_owned(),
            versions: versions
                .filter_map(|version| version["name"].as_str().map(str::to_owned))
                .collect(),
            generation: object["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default(),
            is_established: conditions
                .any(|found| found["type"] == "Established" && found["status"] == "True"),
            is_deleting: object["metadata"]["deletionTimestamp"].is_string(),
        };
        Some((text("/metadata/name")?.to_owned(), definition))
    }
}

/// Definitions as last seen. What was there when the watch began is no change.
#[derive(Default)]
struct SeenDefinitions {
    known: HashMap<String, Definition>,
    listing: Option<HashMap<String, Definition>>,
    is_complete: bool,
}

impl SeenDefinitions {
    /// Takes in what the watch reports, and returns the definitions that changed.
    fn take(&mut self, event: &FeedEvent<'_>) -> Vec<Definition> {
        match event {
            FeedEvent::ListStarted => self.listing = Some(HashMap::new()),
            FeedEvent::Listed(text) => {
                if let (Some(listing), Some((name, definition))) =
                    (&mut self.listing, Definition::read(text))
                {
                    listing.insert(name, definition);
                }
            }
            FeedEvent::ListDone(_) => return self.take_list(),
            FeedEvent::Applied(text) => {
                if let Some((name, definition)) = Definition::read(text) {
                    let before = self.known.insert(name, definition.clone());
                    return Vec::from_iter(
                        (before.as_ref() != Some(&definition)).then_some(definition),
                    );
                }
            }
            FeedEvent::Deleted(text) => {
                let gone = Definition::read(text).and_then(|(name, _)| self.known.remove(&name));
                return Vec::from_iter(gone);
            }
            FeedEvent::Disconnected(_) => {}
        }
        Vec::new()
    }

    fn take_list(&mut self) -> Vec<Definition> {
        let new = self.listing.take().unwrap_or_default();
        let old = std::mem::replace(&mut self.known, new);
        if !std::mem::replace(&mut self.is_complete, true) {
            return Vec::new();
        }
        let gone = old
            .iter()
            .filter(|(name, _)| !self.known.contains_key(*name));
        let changed = self
            .known
            .iter()
            .filter(|(name, new)| old.get(*name) != Some(*new));
        gone.chain(changed).map(|(_, it)| it.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str, established: bool) -> String {
        let status = if established { "True" } else { "False" };
        json!({"metadata": {"name": name, "generation": 1},
            "spec": {"group": "example.com", "names": {"kind": name}, "versions": [{"name": "v1"}]},
            "status": {"conditions": [{"type": "Established", "status": status}]}})
        .to_string()
    }

    #[test]
    fn definitions_that_come_change_or_go_are_told_once() {
        let mut seen = SeenDefinitions::default();
        let mut take = |event: FeedEvent<'_>| {
            let changed = seen.take(&event).into_iter();
            let mut kinds: Vec<String> = changed.map(|it| it.kind).collect();
            kinds.sort();
            kinds
        };
        let none: [&str; 0] = [];
        let (old, raw, served) = (
            definition("Old", true),
            definition("New", false),
            definition("New", true),
        );
        take(FeedEvent::ListStarted);
        take(FeedEvent::Listed(&old));
        assert_eq!(take(FeedEvent::ListDone("1")), none, "it was there before");
        assert_eq!(take(FeedEvent::Applied(&raw)), ["New"]);
        assert_eq!(take(FeedEvent::Applied(&raw)), none);
        assert_eq!(take(FeedEvent::Applied(&served)), ["New"]);
        assert_eq!(take(FeedEvent::Deleted(&served)), ["New"]);
        // The second list shows what happened since the first.
        take(FeedEvent::ListStarted);
        take(FeedEvent::Listed(&served));
        assert_eq!(take(FeedEvent::ListDone("9")), ["New", "Old"]);
    }

    #[test]
    fn only_custom_kinds_are_of_interest() {
        let check = |group: &str, expected: bool| {
            let mut found = Dependencies::default();
            found.add_kind(group, "Thing");
            assert_eq!(found != Dependencies::default(), expected, "{group}");
        };
        check("", false);
        check("apps", false);
        check("rbac.authorization.k8s.io", false);
        check("example.com", true);
        check("snapshot.storage.k8s.io", true);
    }
}
