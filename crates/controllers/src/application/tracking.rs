//! Records what an application applies, before it is applied.

use bellwether_api::oam::{Application, ManagedResource, ResourceTracker, ResourceTrackerType};
use bellwether_application::label::Manifest;
use bellwether_application::resource_policy::{GarbageCollectStrategy, ResourcePolicies};
use bellwether_application::tracker;
use bellwether_runtime::created_by;
use kube::{Api, Client};
use tokio::sync::Mutex;

/// How often a write that met another one is tried again.
const ATTEMPTS: usize = 3;

/// The trackers of the revision that is delivered.
pub(super) struct Tracking<'a> {
    client: Client,
    application: &'a Application,
    policies: &'a ResourcePolicies,
    revision: String,
    recorded: Mutex<Recorded>,
}

struct Recorded {
    versioned: ResourceTracker,
    root: ResourceTracker,
    /// What was recorded in this pass.
    applied: Vec<ManagedResource>,
}

impl<'a> Tracking<'a> {
    /// Begins with the trackers that a cache has.
    pub(super) fn new(
        client: &Client,
        application: &'a Application,
        revision: &str,
        policies: &'a ResourcePolicies,
        known: &[ResourceTracker],
    ) -> Self {
        let begin = |name: String, tracker_type: ResourceTrackerType| {
            let stored = known
                .iter()
                .find(|tracker| tracker.metadata.name.as_ref() == Some(&name));
            stored
                .cloned()
                .unwrap_or_else(|| tracker::new(application, name, revision, tracker_type))
        };
        let versioned = tracker::name_of(application, revision, known);
        let recorded = Recorded {
            versioned: begin(versioned, ResourceTrackerType::Versioned),
            root: begin(tracker::root_name(application), ResourceTrackerType::Root),
            applied: Vec::new(),
        };
        Self {
            client: client.clone(),
            application,
            policies,
            revision: revision.to_owned(),
            recorded: Mutex::new(recorded),
        }
    }

    /// Records objects. They may be applied afterwards.
    pub(super) async fn record(
        &self,
        manifests: &[&Manifest],
        creator: &str,
    ) -> Result<(), kube::Error> {
        let entries: Vec<(ManagedResource, bool)> = manifests
            .iter()
            .map(|manifest| {
                let strategy = self.policies.garbage_collect.strategy(&manifest.object);
                let entry = tracker::managed(manifest, creator, self.policies);
                (entry, strategy == GarbageCollectStrategy::OnAppUpdate)
            })
            .collect();
        let mut recorded = self.recorded.lock().await;
        for is_versioned in [true, false] {
            let own: Vec<&ManagedResource> = entries
                .iter()
                .filter(|(_, versioned)| *versioned == is_versioned)
                .map(|(entry, _)| entry)
                .collect();
            let tracker = if is_versioned {
                &mut recorded.versioned
            } else {
                &mut recorded.root
            };
            self.write(tracker, &own).await?;
        }
        let known = &mut recorded.applied;
        for (entry, _) in entries {
            let identity = tracker::identity(&entry);
            if known
                .iter()
                .all(|known| tracker::identity(known) != identity)
            {
                known.push(entry);
            }
        }
        Ok(())
    }

    /// Leaves out what is not there any more.
    pub(super) async fn leave_out(
        &self,
        is_gone: impl Fn(&ManagedResource) -> bool,
    ) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.client.clone());
        let mut recorded = self.recorded.lock().await;
        recorded.applied.retain(|entry| !is_gone(entry));
        let tracker = &mut recorded.versioned;
        for attempt in 1..=ATTEMPTS {
            let mut wanted = tracker.clone();
            wanted
                .spec
                .managed_resources
                .retain(|entry| !is_gone(entry));
            if wanted == *tracker {
                break;
            }
            let name = wanted.metadata.name.clone().unwrap_or_default();
            match api.replace(&name, &created_by(), &wanted).await {
                Ok(written) => *tracker = written,
                Err(kube::Error::Api(status))
                    if [404, 409].contains(&status.code) && attempt < ATTEMPTS =>
                {
                    self.read(tracker).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds entries to a tracker, on top of what is stored.
    async fn write(
        &self,
        tracker: &mut ResourceTracker,
        entries: &[&ManagedResource],
    ) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.client.clone());
        for attempt in 1.. {
            let mut wanted = tracker.clone();
            let mut is_changed = false;
            for entry in entries {
                is_changed |= tracker::add(&mut wanted, (*entry).clone());
            }
            if !is_changed {
                return Ok(());
            }
            let name = wanted.metadata.name.clone().unwrap_or_default();
            let written = if wanted.metadata.resource_version.is_some() {
                api.replace(&name, &created_by(), &wanted).await
            } else {
                api.create(&created_by(), &wanted).await
            };
            match written {
                Ok(written) => {
                    *tracker = written;
                    return Ok(());
                }
                Err(kube::Error::Api(status))
                    if [404, 409].contains(&status.code) && attempt < ATTEMPTS =>
                {
                    self.read(tracker).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes a tracker as it is stored: the cache may be behind.
    async fn read(&self, tracker: &mut ResourceTracker) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.client.clone());
        let name = tracker.metadata.name.clone().unwrap_or_default();
        let tracker_type = tracker.spec.tracker_type.clone();
        let stored = api.get_opt(&name).await?;
        *tracker = stored
            .unwrap_or_else(|| tracker::new(self.application, name, &self.revision, tracker_type));
        Ok(())
    }

    /// The trackers as they are stored, the one of this revision first.
    pub(super) async fn stored(&self) -> Result<Vec<ResourceTracker>, kube::Error> {
        let mut recorded = self.recorded.lock().await;
        let Recorded {
            versioned, root, ..
        } = &mut *recorded;
        self.read(versioned).await?;
        self.read(root).await?;
        Ok(vec![versioned.clone(), root.clone()])
    }

    /// The trackers as far as this process knows them.
    pub(super) async fn known(&self) -> Vec<ResourceTracker> {
        let recorded = self.recorded.lock().await;
        vec![recorded.versioned.clone(), recorded.root.clone()]
    }

    /// What was recorded in this pass.
    pub(super) async fn applied(&self) -> Vec<ManagedResource> {
        self.recorded.lock().await.applied.clone()
    }
}
