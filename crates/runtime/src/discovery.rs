//! What a cluster calls its kinds: asked once for each group and version, and again when a kind is
//! not among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bellwether_apply::ResourceType;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::objects::Objects;
use crate::request_error::RequestError;

/// The kinds of one group and version.
type Kinds = Arc<Vec<Arc<ResourceType>>>;

/// Lists of kinds that several clusters have: most members of a fleet have the same.
#[derive(Debug, Default)]
pub struct SharedKinds(Mutex<HashSet<Kinds>>);

impl SharedKinds {
    /// The list that is known already, if it is the same.
    fn share(&self, kinds: Vec<Arc<ResourceType>>) -> Kinds {
        let mut known = self.0.lock();
        if let Some(known) = known.get(&kinds) {
            return Arc::clone(known);
        }
        // Those that no cluster has any more go.
        known.retain(|kinds| Arc::strong_count(kinds) > 1);
        let kinds = Arc::new(kinds);
        known.insert(Arc::clone(&kinds));
        kinds
    }
}

/// The kinds of a cluster, as far as somebody asked for them.
#[derive(Debug)]
pub struct Discovery {
    shared: Arc<SharedKinds>,
    known: RwLock<HashMap<(String, String), Kinds>>,
    /// The versions of groups, the latest first.
    groups: RwLock<HashMap<String, Arc<[String]>>>,
    /// Held while the cluster is asked: many that want to know the same ask once.
    asking: tokio::sync::Mutex<()>,
}

impl Discovery {
    /// The kinds of a cluster, of which nothing is known; those that others have too are kept once.
    pub fn new(shared: Arc<SharedKinds>) -> Self {
        Self {
            shared,
            known: RwLock::default(),
            groups: RwLock::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns what the cluster calls a kind; nothing if it does not know it.
    pub async fn find(
        &self,
        objects: &Objects,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let is_it = |resource: &ResourceType| resource.kind == kind;
        self.search(objects, group, version, is_it).await
    }

    /// Returns what the cluster calls a kind in the latest version that has it; nothing if none has.
    pub async fn find_latest(
        &self,
        objects: &Objects,
        group: &str,
        kind: &str,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        for version in self.versions(objects, group).await?.iter() {
            let found = self.find(objects, group, version, kind).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the kinds that a group has now, in the version that the server prefers.
    pub async fn all_of(
        &self,
        objects: &Objects,
        group: &str,
    ) -> Result<Vec<Arc<ResourceType>>, RequestError> {
        self.groups.write().remove(group);
        let versions = self.versions(objects, group).await?;
        match versions.first() {
            Some(version) => read(objects, group, version).await,
            None => Ok(Vec::new()),
        }
    }

    /// The versions of a group in the order in which the server prefers them: stable ones first, and
    /// of these the latest.
    async fn versions(
        &self,
        objects: &Objects,
        group: &str,
    ) -> Result<Arc<[String]>, RequestError> {
        if group.is_empty() {
            return Ok(Arc::new(["v1".to_owned()]));
        }
        if let Some(known) = self.groups.read().get(group) {
            return Ok(Arc::clone(known));
        }
        let found = match objects.read(&format!("/apis/{group}")).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => Value::Null,
            Err(error) => return Err(error),
        };
        let versions = found["versions"].as_array().into_iter().flatten();
        let versions: Arc<[String]> = versions
            .filter_map(|entry| entry["version"].as_str().map(str::to_owned))
            .collect();
        let mut groups = self.groups.write();
        groups.insert(group.to_owned(), Arc::clone(&versions));
        Ok(versions)
    }

    /// Returns what the cluster calls a kind, by its name in paths; nothing if it does not know it.
    pub async fn find_plural(
        &self,
        objects: &Objects,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let is_it = |resource: &ResourceType| resource.plural == plural;
        self.search(objects, group, version, is_it).await
    }

    async fn search(
        &self,
        objects: &Objects,
        group: &str,
        version: &str,
        is_it: impl Fn(&ResourceType) -> bool,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let key = (group.to_owned(), version.to_owned());
        let among = |kinds: &Kinds| kinds.iter().find(|resource| is_it(resource)).cloned();
        let known = || self.known.read().get(&key).and_then(&among);
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let _asking = self.asking.lock().await;
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let kinds = self.shared.share(read(objects, group, version).await?);
        let found = among(&kinds);
        self.known.write().insert(key, kinds);
        Ok(found)
    }

    /// Forgets a group and version: its kinds may have changed.
    pub fn forget(&self, group: &str, version: &str) {
        self.known
            .write()
            .remove(&(group.to_owned(), version.to_owned()));
        self.groups.write().remove(group);
    }
}

async fn read(
    objects: &Objects,
    group: &str,
    version: &str,
) -> Result<Vec<Arc<ResourceType>>, RequestError> {
    let path = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    let list = match objects.read(&path).await {
        Ok(list) => list,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut kinds = Vec::new();
    for entry in list["resources"].as_array().into_iter().flatten() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let plural = text("name");
        // Names with a slash are parts of objects, such as their status.
        if plural.is_empty() || plural.contains('/') {
            continue;
        }
        let resource = ResourceType {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("kind"),
            plural,
            namespaced: entry["namespaced"] == Value::Bool(true),
        };
        kinds.push(Arc::new(resource));
    }
    Ok(kinds)
}
