//! What an Application in a file would change, on each cluster, compared with what is live.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use bellwether_api::cluster::ManagedCluster;
use bellwether_api::oam::names::{LOCAL_CLUSTER, label};
use bellwether_api::oam::{
    Application, ApplicationRevision, ComponentDefinition, DefinitionRevision, ManagedResource,
    Policy, PolicyDefinition, ResourceTracker, TraitDefinition, WorkflowStepDefinition,
};
use bellwether_api::work::ManifestWork;
use bellwether_api::workflow::Workflow;
use bellwether_apiserver::Clock;
use bellwether_application::appfile::Appfile;
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::dispatch::{self, Request, describe};
use bellwether_application::label::Manifest;
use bellwether_application::member::work_name;
use bellwether_application::preview::{Outcome, preview, preview_sent};
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::tracker;
use bellwether_application::world::{Cluster, ClusterVersion, World};
use bellwether_controllers::application::{Copies, Subject};
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cli::say;
use crate::print::PrintArgs;
use crate::render::{fetcher, parse};

/// Whether an object is an Application.
pub(super) fn is_application(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    object["kind"] == "Application" && api_version.starts_with("core.oam.dev/")
}

/// Shows what the applications among some objects would change.
pub(super) async fn run(
    objects: &[Value],
    hub: Option<&Client>,
    print: PrintArgs,
) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    for object in objects.iter().filter(|object| is_application(object)) {
        let application: Application = serde_json::from_value(object.clone())
            .with_context(|| format!("application {}", object["metadata"]["name"]))?;
        let plan = Plan::new(&application, objects, hub).await?;
        if print.is_table() {
            say(&plan.text());
        } else {
            documents.push(plan.document());
        }
    }
    if !print.is_table() {
        print.print(&json!({"applications": documents}), &[])?;
    }
    Ok(())
}

/// What an application would change.
struct Plan {
    name: String,
    /// What would happen to objects, by cluster.
    clusters: BTreeMap<String, Vec<(String, Outcome)>>,
}

fn cluster_name(cluster: &str) -> &str {
    if cluster.is_empty() {
        LOCAL_CLUSTER
    } else {
        cluster
    }
}

impl Plan {
    async fn new(
        application: &Application,
        objects: &[Value],
        hub: Option<&Client>,
    ) -> anyhow::Result<Self> {
        let name = application.metadata.name.clone().unwrap_or_default();
        let namespace = application.metadata.namespace.clone().unwrap_or_default();
        let name = format!("{namespace}/{name}");
        let mut basis = Basis::of_files(application, objects);
        if let Some(client) = hub {
            basis.add_hub(client).await?;
        }
        let fetcher = hub.map(|client| fetcher(objects.to_vec(), Some(client.clone())));
        let (catalog, mut world) = (basis.catalog, basis.world);
        let now = Clock::system().now();
        let application = &basis.application;
        let pinned = basis.revision.as_ref();
        world.outside = fetcher
            .as_ref()
            .map(|fetcher| fetcher.of(application, pinned, now));
        let subject = Subject {
            application,
            pinned,
            number: basis.revision_number,
        };
        let appfile = parse(&subject, &catalog, &world, fetcher.as_ref())
            .await
            .with_context(|| format!("application {name}"))?;
        let policies = ResourcePolicies::of(application).map_err(anyhow::Error::msg)?;
        let delivery = deliver(&appfile).with_context(|| format!("application {name}"))?;
        let of_components = delivery
            .components
            .iter()
            .flat_map(|component| &component.manifests);
        let manifests: Vec<&Manifest> = delivery.policies.iter().chain(of_components).collect();
        let mut plan = Self {
            name,
            clusters: BTreeMap::new(),
        };
        let mut wanted = BTreeSet::new();
        for manifest in manifests {
            let entry = tracker::managed(manifest, tracker::CREATOR_WORKFLOW, &policies);
            // What two components have in common is one object.
            if !wanted.insert(tracker::identity(&entry)) {
                continue;
            }
            let recorded = basis
                .recorded
                .iter()
                .find(|known| tracker::identity(known) == tracker::identity(&entry));
            let last_applied =
                recorded.and_then(|known| Some(dispatch::compared(known.raw.as_ref()?.value())));
            let state = State {
                hub,
                appfile: &appfile,
                policies: &policies,
                last_applied: last_applied.as_ref(),
            };
            let outcome = state.outcome(manifest).await?;
            plan.add(&manifest.cluster, describe(&manifest.object), outcome);
        }
        let keeps = policies.garbage_collect.keep_legacy_resource;
        for entry in basis
            .recorded
            .iter()
            .filter(|entry| !entry.skip_gc && !keeps)
        {
            if !wanted.contains(&tracker::identity(entry)) {
                let object = tracker::object(entry);
                plan.add(&entry.cluster, describe(&object), Outcome::Delete);
            }
        }
        Ok(plan)
    }

    fn add(&mut self, cluster: &str, object: String, outcome: Outcome) {
        let cluster = cluster_name(cluster).to_owned();
        self.clusters
            .entry(cluster)
            .or_default()
            .push((object, outcome));
    }

    fn text(&self) -> String {
        let all = self.clusters.values().flatten();
        let count = |word: &str| {
            all.clone()
                .filter(|(_, outcome)| outcome.as_str() == word)
                .count()
        };
        let mut lines = vec![format!(
            "application {}: {} to create, {} to update, {} to recreate, {} to delete, {} refused, {} as they are",
            self.name,
            count("create"),
            count("update"),
            count("recreate"),
            count("delete"),
            count("refused"),
            count("keep"),
        )];
        for (cluster, objects) in &self.clusters {
            lines.push(format!("{cluster}:"));
            for (object, outcome) in objects {
                lines.push(format!("  {:<9} {object}", outcome.as_str()));
                match outcome {
                    Outcome::Update(differences) => {
                        lines.extend(differences.iter().map(|it| format!("            {it}")));
                    }
                    Outcome::Refused(why) => lines.push(format!("            {why}")),
                    _ => {}
                }
            }
        }
        lines.join("\n")
    }

    fn document(&self) -> Value {
        let clusters: serde_json::Map<String, Value> = self
            .clusters
            .iter()
            .map(|(cluster, objects)| {
                let objects = objects.iter().map(|(object, outcome)| {
                    let mut entry = json!({"object": object, "change": outcome.as_str()});
                    match outcome {
                        Outcome::Update(differences) => {
                            let fields = differences.iter().map(|it| {
                                json!({"path": it.path, "before": it.before, "after": it.after})
                            });
                            entry["fields"] = fields.collect();
                        }
                        Outcome::Refused(why) => entry["reason"] = why.as_str().into(),
                        _ => {}
                    }
                    entry
                });
                (cluster.clone(), objects.collect())
            })
            .collect();
        json!({"name": self.name, "clusters": clusters})
    }
}

/// What an object is compared with.
struct State<'a> {
    hub: Option<&'a Client>,
    appfile: &'a Appfile<'a>,
    policies: &'a ResourcePolicies,
    last_applied: Option<&'a Value>,
}

impl State<'_> {
    async fn outcome(&self, manifest: &Manifest) -> anyhow::Result<Outcome> {
        let Some(client) = self.hub else {
            return Ok(Outcome::Create);
        };
        let cluster = cluster_name(&manifest.cluster);
        if cluster != LOCAL_CLUSTER {
            let works: Api<ManifestWork> = Api::namespaced(client.clone(), cluster);
            let context = &self.appfile.context;
            let name = work_name(&context.namespace, &context.name);
            let work = works.get_opt(&name).await?;
            let workload = work.and_then(|work| work.spec.workload);
            let sent = workload.map(|workload| workload.manifests);
            let sent = sent.into_iter().flatten();
            let id = describe(&manifest.object);
            let known = sent.into_iter().find(|known| describe(known) == id);
            return Ok(preview_sent(known.as_ref(), &manifest.object));
        }
        let mut object = manifest.object.clone();
        let live = match live(client, &mut object).await {
            Ok(live) => live,
            Err(why) => return Ok(Outcome::Refused(why)),
        };
        Ok(preview(Request {
            manifest: &object,
            last_applied: self.last_applied,
            live: live.as_ref(),
            policies: self.policies,
            occasion: Occasion::Update,
        }))
    }
}

/// An object of the hub as it is now. What is cluster-scoped loses its namespace.
async fn live(client: &Client, object: &mut Value) -> Result<Option<Value>, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let (resource, capabilities) = pinned_kind(client, &kind)
        .await
        .map_err(|_| format!("the hub does not serve {} {}", kind.kind, api_version))?;
    let api: Api<DynamicObject> = if capabilities.scope == Scope::Namespaced {
        let namespace = text(&object["metadata"]["namespace"]);
        Api::namespaced_with(client.clone(), &namespace, &resource)
    } else {
        bellwether_json::path::remove(object, &["metadata", "namespace"]);
        Api::all_with(client.clone(), &resource)
    };
    let found = api
        .get_opt(&text(&object["metadata"]["name"]))
        .await
        .map_err(|error| error.to_string())?;
    Ok(found.map(|mut found| {
        found.metadata.managed_fields = None;
        to_json(&found)
    }))
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// What an application is rendered by, and what it applied before.
struct Basis {
    /// The application, with what identifies it on the hub.
    application: Application,
    /// The revision that recorded what it is made of, if it would stay as it is.
    revision: Option<ApplicationRevision>,
    catalog: Catalog,
    world: World,
    recorded: Vec<ManagedResource>,
    revision_number: i64,
}

impl Basis {
    fn of_files(application: &Application, objects: &[Value]) -> Self {
        let mut catalog = Catalog::default();
        let mut rest = Vec::new();
        for object in objects.iter().filter(|object| !is_application(object)) {
            if !catalog.insert(object.clone()) {
                rest.push(object.clone());
            }
        }
        Self {
            application: application.clone(),
            revision: None,
            catalog,
            world: World::new(ClusterVersion::default(), rest),
            recorded: Vec::new(),
            revision_number: 1,
        }
    }

    /// Adds what the files do not have.
    async fn add_hub(&mut self, client: &Client) -> anyhow::Result<()> {
        let namespace = self.application.metadata.namespace.clone();
        let namespace = namespace.unwrap_or_default();
        let files = self.catalog.clone();
        self.catalog = Catalog::default();
        self.add_definitions::<ComponentDefinition>(client).await?;
        self.add_definitions::<TraitDefinition>(client).await?;
        self.add_definitions::<PolicyDefinition>(client).await?;
        self.add_definitions::<WorkflowStepDefinition>(client)
            .await?;
        self.add_definitions::<DefinitionRevision>(client).await?;
        self.catalog.extend(&files);
        let info = client.apiserver_version().await?;
        self.world.hub_version = ClusterVersion {
            major: info.major,
            minor: info.minor,
            git_version: info.git_version,
            platform: info.platform,
        };
        let everything = ListParams::default();
        let clusters: Api<ManagedCluster> = Api::all(client.clone());
        let clusters = clusters.list(&everything).await?.items;
        let clusters = clusters.into_iter().map(|cluster| Cluster {
            name: cluster.metadata.name.unwrap_or_default(),
            labels: cluster.metadata.labels.unwrap_or_default(),
            version: None,
        });
        Arc::make_mut(&mut self.world.clusters).extend(clusters);
        let policies: Api<Policy> = Api::namespaced(client.clone(), &namespace);
        let policies = policies.list(&everything).await?.items;
        self.world.objects.extend(policies.iter().map(to_json));
        let workflows: Api<Workflow> = Api::namespaced(client.clone(), &namespace);
        let workflows = workflows.list(&everything).await?.items;
        self.world.objects.extend(workflows.iter().map(to_json));
        let copies = Copies::new(client);
        copies
            .add(&self.application, &namespace, &mut self.world)
            .await?;
        self.add_recorded(client, &namespace).await
    }

    async fn add_definitions<K>(&mut self, client: &Client) -> anyhow::Result<()>
    where
        K: kube::Resource<DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Serialize
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(client.clone());
        for definition in api.list(&ListParams::default()).await?.items {
            self.catalog.insert(to_json(&definition));
        }
        Ok(())
    }

    /// Adds what the application applied before, and which revision it would be.
    async fn add_recorded(&mut self, client: &Client, namespace: &str) -> anyhow::Result<()> {
        let name = self.application.metadata.name.clone().unwrap_or_default();
        let applications: Api<Application> = Api::namespaced(client.clone(), namespace);
        if let Some(known) = applications.get_opt(&name).await? {
            let latest = known.status.and_then(|status| status.latest_revision);
            let latest = latest.unwrap_or_default();
            if known.spec != self.application.spec {
                self.revision_number = latest.revision + 1;
            } else if latest.revision > 0 {
                self.revision_number = latest.revision;
                let revisions = Api::namespaced(client.clone(), namespace);
                self.revision = revisions.get_opt(&latest.name).await?;
            }
            // Random values of charts are made of these.
            self.application.metadata.uid = known.metadata.uid;
            self.application.metadata.creation_timestamp = known.metadata.creation_timestamp;
        }
        let own = format!(
            "{}={name},{}={namespace}",
            label::APP_NAME,
            label::APP_NAMESPACE
        );
        let trackers: Api<ResourceTracker> = Api::all(client.clone());
        let trackers = trackers.list(&ListParams::default().labels(&own)).await?;
        let mut seen = BTreeSet::new();
        let mut trackers = trackers.items;
        trackers.sort_by_key(|tracker| std::cmp::Reverse(tracker.spec.application_generation));
        let entries = trackers
            .into_iter()
            .flat_map(|tracker| tracker.spec.managed_resources);
        let entries = entries.filter(|entry| seen.insert(tracker::identity(entry)));
        self.recorded = entries.collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_hub_everything_would_be_created() {
        let application = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "n"},
            "spec": {"components": [{"name": "web", "type": "webservice", "properties": {"image": "nginx"}}]}});
        let read: Application = serde_json::from_value(application.clone()).unwrap();
        let plan = Plan::new(&read, &[application], None).await.unwrap();
        let text = plan.text();
        assert!(
            text.starts_with("application n/shop: 1 to create, 0 to update"),
            "{text}"
        );
        assert!(
            text.ends_with("local:\n  create    Deployment n/web"),
            "{text}"
        );
    }
}
