//! Brings objects to members, in works, and takes in what is known of them there.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::oam::TraitStage;
use bellwether_api::oam::names::label;
use bellwether_api::work::ManifestWork;
use bellwether_application::dispatch;
use bellwether_application::label::Manifest;
use bellwether_application::member::{self, AskedFields, Sent};
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::tracker;
use bellwether_runtime::{ObjectKey, ensure};
use serde_json::Value;

use super::deliver::{Pass, explained, is_local, rejected};
use super::objects::said_of;
use super::{Failure, owner_of};

impl Pass<'_> {
    /// Fields that snippets look at.
    fn asked_fields(&self, manifest: &Manifest) -> Vec<String> {
        let mut components = self.appfile.components.iter();
        let component = components.find(|component| component.name == manifest.component);
        let Some(Ok(component)) = component.map(|component| self.appfile.component(component))
        else {
            return Vec::new();
        };
        let mut traits = component.traits.iter();
        let of_trait = traits.find(|it| it.definition.type_name == manifest.trait_type);
        let definition = of_trait.map_or(&component.definition, |it| &it.definition);
        let asked = AskedFields::of(definition);
        asked.of_manifest(manifest).map(str::to_owned).collect()
    }

    /// Brings objects to members, and takes in what is known of them there.
    pub(super) async fn apply_members(&mut self, manifests: &[&Manifest]) -> Result<(), Failure> {
        let mut by_cluster: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
        for manifest in manifests {
            if !is_local(&manifest.cluster) {
                by_cluster
                    .entry(&manifest.cluster)
                    .or_default()
                    .push(manifest);
            }
        }
        for (cluster, manifests) in by_cluster {
            let manifests = last_of_each_object(&manifests);
            self.check_membership(cluster)?;
            let context = &self.appfile.context;
            let name = member::work_name(&context.namespace, &context.name);
            let key = ObjectKey::new(cluster, &name);
            let known = self.applications.works.cache().get(&key);
            let kept = kept_manifests(known.as_deref(), cluster, &manifests);
            let sent: Vec<Sent<'_>> = manifests
                .iter()
                .copied()
                .chain(&kept)
                .map(|manifest| Sent {
                    object: &manifest.object,
                    fields: self.asked_fields(manifest),
                })
                .collect();
            self.check_owners(cluster, &key, &manifests)?;
            let mut work = member::work(&self.appfile.context, cluster, &sent, self.policies)
                .map_err(rejected)?;
            if let Some(known) = &known {
                member::drop_annotations(known, &mut work);
            }
            ensure(&self.applications.hub.client, &work)
                .await
                .map_err(|error| explained(error, &work))?;
            let Some(known) = known else { continue };
            if let Some(problem) = member::problem(&known) {
                return Err(rejected(problem));
            }
            let is_observed = known.spec.workload.as_ref().is_some_and(|workload| {
                manifests
                    .iter()
                    .all(|manifest| workload.manifests.contains(&manifest.object))
            });
            for manifest in manifests.into_iter().filter(|_| is_observed) {
                let is_kept_up = self.occasion == Occasion::StateKeep;
                if is_kept_up && member::is_left_deleted(&known, &manifest.object, self.policies) {
                    let text = dispatch::left_deleted(&manifest.object);
                    let text = format!("on cluster {cluster}, {text}");
                    let identity = tracker::identity_of(manifest);
                    self.left_deleted.insert(identity, text);
                    continue;
                }
                if let Some(live) = member::live(&known, &manifest.object) {
                    self.live.insert(tracker::identity_of(manifest), live);
                }
            }
        }
        Ok(())
    }

    /// Works of a cluster that is being detached are removed: nothing is brought there any more.
    fn check_membership(&self, cluster: &str) -> Result<(), Failure> {
        let known = self
            .applications
            .clusters
            .get(&ObjectKey::cluster_scoped(cluster));
        if known.is_some_and(|it| it.metadata.deletion_timestamp.is_some()) {
            let problem = "is being detached; choose other clusters in a topology policy";
            return Err(rejected(format!("cluster {cluster} {problem}")));
        }
        Ok(())
    }

    /// An object that another application brought to the member first is not touched, unless both share it.
    fn check_owners(
        &self,
        cluster: &str,
        own: &ObjectKey,
        manifests: &[&Manifest],
    ) -> Result<(), Failure> {
        let applications = self.applications;
        let own = applications.works.cache().get(own);
        let context = &self.appfile.context;
        let application = ObjectKey::new(&context.namespace, &context.name);
        let mut problems = Vec::new();
        for manifest in manifests {
            let object = &manifest.object;
            let key = member::object_key(cluster, object);
            let mut works = applications.works_by_object.of(&key);
            works.retain(|work| {
                owner_of(work.metadata.labels.as_ref()).as_ref() != Some(&application)
            });
            let Some(holder) = member::holder(object, own.as_deref(), &works) else {
                continue;
            };
            let Some(owner) = owner_of(holder.metadata.labels.as_ref()) else {
                continue;
            };
            let policies = applications.applications.get(&owner);
            let policies = policies.and_then(|other| ResourcePolicies::of(&other).ok());
            let shares = |policies: &ResourcePolicies| policies.shared.selects(object);
            if shares(self.policies) && policies.as_ref().is_some_and(shares) {
                continue;
            }
            let name = format!("{}/{}", owner.namespace, owner.name);
            let problem = member::other_owner(object, cluster, &name).to_string();
            problems.push(said_of(manifest, &problem));
            let mut contested = applications.contested.lock();
            let waiting = contested.entry(key).or_default();
            waiting.insert(application.clone());
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(rejected(problems.join("; ")))
    }
}

/// One manifest for each object: the last one, as on the hub, where a later manifest is written over an earlier one. The Service
/// of a webservice that exposes its port and that of its gateway are such a pair; a work cannot hold both.
fn last_of_each_object<'a>(manifests: &[&'a Manifest]) -> Vec<&'a Manifest> {
    let mut seen = BTreeSet::new();
    let mut last: Vec<&Manifest> = manifests
        .iter()
        .rev()
        .copied()
        .filter(|manifest| seen.insert(tracker::identity_of(manifest)))
        .collect();
    last.reverse();
    last
}

/// Objects that a work has already, of components that are applied by other steps. Those that the application no longer has
/// stay until it is delivered.
fn kept_manifests(
    known: Option<&ManifestWork>,
    cluster: &str,
    manifests: &[&Manifest],
) -> Vec<Manifest> {
    let components: BTreeSet<&str> = manifests
        .iter()
        .map(|manifest| manifest.component.as_str())
        .filter(|component| !component.is_empty())
        .collect();
    let own: BTreeSet<tracker::Identity> = manifests
        .iter()
        .map(|manifest| tracker::identity_of(manifest))
        .collect();
    let workload = known.and_then(|known| known.spec.workload.as_ref());
    let objects = workload
        .into_iter()
        .flat_map(|workload| &workload.manifests);
    objects
        .map(|object| of_work(object, cluster))
        .filter(|manifest| {
            !components.contains(manifest.component.as_str())
                && !own.contains(&tracker::identity_of(manifest))
        })
        .collect()
}

/// An object of a work.
pub(super) fn of_work(object: &Value, cluster: &str) -> Manifest {
    let label = |key: &str| {
        let value = object["metadata"]["labels"][key].as_str();
        value.unwrap_or_default().to_owned()
    };
    Manifest {
        object: object.clone(),
        component: label(label::COMPONENT),
        trait_type: label(label::TRAIT_TYPE),
        resource: label(label::TRAIT_RESOURCE),
        stage: TraitStage::DefaultDispatch,
        cluster: cluster.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_manifest_of_an_object_is_sent() {
        let manifest = |kind: &str, port: u16| {
            let object = json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"name": "web", "namespace": "default"}, "spec": {"port": port}});
            of_work(&object, "cluster1")
        };
        let all = [
            manifest("Service", 1),
            manifest("Pod", 2),
            manifest("Service", 3),
        ];
        let sent = last_of_each_object(&all.iter().collect::<Vec<_>>());
        let ports: Vec<&Value> = sent.iter().map(|it| &it.object["spec"]["port"]).collect();
        assert_eq!(ports, [&json!(2), &json!(3)]);
    }
}
