//! Where an application stands: its steps, its components with traits and objects on each cluster, and what it waits for.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::meta::FALSE;
use bellwether_api::oam::names::{LOCAL_CLUSTER, condition, label, phase};
use bellwether_api::oam::{
    Application, ApplicationComponent, ApplicationStatus, ComponentService, ManagedResource,
    ResourceTracker,
};
use bellwether_api::workflow::{StepPhase, WorkflowStepStatus};
use bellwether_runtime::{Cache, Selection};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::read::{find, guess};
use super::rollout::next_line;
use super::tree::{Layout, Node, Span, Tone, Tree};
use super::workflow::{Moment, span};
use super::{Snapshot, Source};
use crate::error::Error;

/// An application and what is recorded of its objects, read at one moment.
#[derive(Debug, Clone)]
pub struct ApplicationSnapshot {
    application: Application,
    resources: Vec<ManagedResource>,
    moment: Moment,
}

pub(super) async fn read(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let mut snapshot = read_application(source.client, source.namespace, name).await?;
    snapshot.moment = Moment::read(source, &format!("application-{name}")).await;
    Ok(Snapshot::Application(Box::new(snapshot)))
}

/// Reads an application with its trackers.
pub async fn read_application(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<ApplicationSnapshot, Error> {
    let applications: Api<Application> = Api::namespaced(client.clone(), namespace);
    let Some(application) = find(&applications, name).await? else {
        let guess = guess(&applications, name, "; see bellwether app list -A").await;
        return Err(Error::Usage(format!(
            "there is no application {name} in namespace {namespace}{guess}"
        )));
    };
    let trackers: Api<ResourceTracker> = Api::all(client.clone());
    let own = format!(
        "{}={name},{}={namespace}",
        label::APP_NAME,
        label::APP_NAMESPACE
    );
    let trackers = trackers.list(&ListParams::default().labels(&own)).await?;
    Ok(ApplicationSnapshot::new(application, trackers.items))
}

/// Notifies of changes of an application, until the result is dropped.
pub fn application_triggers(
    client: &Client,
    namespace: &str,
    name: &str,
    changed: &Arc<Notify>,
) -> Cache<Application> {
    let applications: Api<Application> = Api::namespaced(client.clone(), namespace);
    let selection = Selection::fields(&format!("metadata.name={name}"));
    let changed = Arc::clone(changed);
    Cache::start(applications, selection, move |_| changed.notify_one())
}

fn cluster_name(cluster: &str) -> &str {
    if cluster.is_empty() {
        LOCAL_CLUSTER
    } else {
        cluster
    }
}

impl ApplicationSnapshot {
    /// An application with its trackers; of objects that several have, the newest counts.
    pub fn new(application: Application, mut trackers: Vec<ResourceTracker>) -> Self {
        trackers.sort_by_key(|tracker| std::cmp::Reverse(tracker.spec.application_generation));
        let mut seen = BTreeSet::new();
        let entries = trackers
            .into_iter()
            .flat_map(|tracker| tracker.spec.managed_resources);
        let resources = entries.filter(|entry| {
            seen.insert((
                cluster_name(&entry.cluster).to_owned(),
                entry.kind.clone(),
                entry.namespace.clone(),
                entry.name.clone(),
            ))
        });
        Self {
            resources: resources.collect(),
            application,
            moment: Moment::default(),
        }
    }

    fn name(&self) -> &str {
        self.application
            .metadata
            .name
            .as_deref()
            .unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        let namespace = self.application.metadata.namespace.as_deref();
        namespace.unwrap_or_default()
    }

    fn told(&self) -> ApplicationStatus {
        self.application.status.clone().unwrap_or_default()
    }

    /// Whether the controller has seen the application as it is now.
    fn is_current(&self) -> bool {
        self.told().observed_generation == self.application.metadata.generation
    }

    /// Returns true if it is delivered and healthy.
    pub fn is_complete(&self) -> bool {
        self.is_current() && self.told().phase == phase::RUNNING
    }

    fn phase(&self) -> (Tone, String) {
        let told = self.told().phase;
        match told.as_str() {
            "" => (Tone::Quiet, "not seen by the hub yet".to_owned()),
            _ if !self.is_current() => (Tone::Active, format!("{told}, changed since")),
            phase::RUNNING => (Tone::Good, told),
            phase::WORKFLOW_FAILED | phase::WORKFLOW_TERMINATED | phase::UNHEALTHY => {
                (Tone::Bad, told)
            }
            _ => (Tone::Active, told),
        }
    }

    /// The page of `status`.
    pub fn status(&self) -> Tree {
        self.status_at(&self.moment)
    }

    /// The lines of the page without times that run.
    pub fn lines(&self) -> Vec<String> {
        let text = self.status_at(&self.moment.timeless()).render(false);
        text.lines().map(str::to_owned).collect()
    }

    fn status_at(&self, moment: &Moment) -> Tree {
        let told = self.told();
        let (tone, phase) = self.phase();
        let mut title = vec![
            Span::new(
                Tone::Title,
                format!("application {}/{}", self.namespace(), self.name()),
            ),
            Span::new(tone, phase),
        ];
        if let Some(revision) = &told.latest_revision {
            title.push(Span::plain(format!("revision {}", revision.name)));
        }
        let components = &self.application.spec.components;
        let mut nodes: Vec<Node> = components.iter().map(|it| self.component(it)).collect();
        let policies = &self.application.spec.policies;
        let of_policies: Vec<Node> = policies
            .iter()
            .filter_map(|policy| {
                let objects = self.objects(&policy.name, "", &|_| true);
                let cells = vec![Span::plain(format!(
                    "policy {} ({})",
                    policy.name, policy.policy_type
                ))];
                (!objects.is_empty()).then_some(Node {
                    cells,
                    is_current: false,
                    children: objects,
                })
            })
            .collect();
        nodes.extend(of_policies);
        nodes.extend(self.steps(moment));
        Tree {
            title,
            nodes,
            notes: self.notes(),
            layout: Layout::Branches,
        }
    }

    fn component(&self, component: &ApplicationComponent) -> Node {
        let told = self.told();
        let places: Vec<&ComponentService> = told
            .services
            .iter()
            .filter(|service| service.name == component.name)
            .collect();
        let label = Span::plain(format!(
            "component {} ({})",
            component.name, component.component_type
        ));
        match places.as_slice() {
            [] => Node {
                cells: vec![label, Span::new(Tone::Quiet, "not applied yet")],
                is_current: false,
                children: self.objects(&component.name, "", &|_| true),
            },
            [one] => self.place(
                vec![label],
                one,
                &[],
                one.cluster != *cluster_name("") && !one.cluster.is_empty(),
            ),
            several => Node {
                cells: vec![label],
                is_current: several.iter().any(|service| !service.healthy),
                children: several
                    .iter()
                    .map(|service| {
                        let cluster = cluster_name(&service.cluster);
                        // One cluster may have the component in several namespaces.
                        let is_beside = |other: &&&ComponentService| {
                            cluster_name(&other.cluster) == cluster
                                && other.namespace != service.namespace
                        };
                        let beside = several.iter().filter(is_beside);
                        let beside: Vec<&str> =
                            beside.map(|other| other.namespace.as_str()).collect();
                        let place = if beside.is_empty() {
                            format!("on {cluster}")
                        } else {
                            format!("on {cluster}, in {}", service.namespace)
                        };
                        self.place(vec![Span::plain(place)], service, &beside, false)
                    })
                    .collect(),
            },
        }
    }

    /// A component on a cluster: its state, its traits, its objects. Objects in the namespaces of `beside` belong to
    /// other places of the component.
    fn place(
        &self,
        mut cells: Vec<Span>,
        service: &ComponentService,
        beside: &[&str],
        names_cluster: bool,
    ) -> Node {
        if names_cluster {
            cells.push(Span::plain(format!("on {}", service.cluster)));
        }
        cells.push(state(service.healthy, false));
        if !service.message.is_empty() {
            cells.push(Span::plain(one_line(&service.message)));
        }
        let cluster = cluster_name(&service.cluster);
        let is_here = |entry: &ManagedResource| {
            cluster == cluster_name(&entry.cluster) && !beside.contains(&entry.namespace.as_str())
        };
        let mut children = self.objects(&service.name, "", &is_here);
        for applied in &service.traits {
            let mut cells = vec![
                Span::plain(format!("trait {}", applied.trait_type)),
                state(applied.healthy, applied.pending),
            ];
            if !applied.message.is_empty() {
                cells.push(Span::plain(one_line(&applied.message)));
            }
            children.push(Node {
                cells,
                is_current: false,
                children: self.objects(&service.name, &applied.trait_type, &is_here),
            });
        }
        Node {
            cells,
            is_current: !service.healthy,
            children,
        }
    }

    /// Objects that a component, or one of its traits, has at a place.
    fn objects(
        &self,
        component: &str,
        trait_type: &str,
        is_here: &dyn Fn(&ManagedResource) -> bool,
    ) -> Vec<Node> {
        let is_own = |entry: &&ManagedResource| {
            let own = entry.resource_trait.as_str();
            let own = if own == label::AUXILIARY { "" } else { own };
            entry.component == component && own == trait_type && is_here(entry)
        };
        let own = self.resources.iter().filter(is_own);
        own.map(|entry| {
            let name = if entry.namespace.is_empty() {
                entry.name.clone()
            } else {
                format!("{}/{}", entry.namespace, entry.name)
            };
            Node::leaf(vec![
                Span::plain(format!("{} {name}", entry.kind)),
                Span::new(Tone::Quiet, format!("on {}", cluster_name(&entry.cluster))),
            ])
        })
        .collect()
    }

    fn steps(&self, moment: &Moment) -> Option<Node> {
        let workflow = self.told().workflow?;
        let is_open = |step: &&WorkflowStepStatus| step.status.phase != Some(StepPhase::Succeeded);
        let shown = self.application.spec.workflow.is_some()
            || workflow.steps.iter().any(|it| is_open(&it));
        if !shown || workflow.steps.is_empty() {
            return None;
        }
        let mut cells = vec![Span::plain("workflow")];
        if let (Some(started), Some(now)) = (&workflow.start_time, moment.now) {
            let end = workflow.end_time.as_ref().map_or(now, |time| time.0);
            cells.push(Span::plain(format!("for {}", span(started.0, end))));
        }
        Some(Node {
            cells,
            is_current: !workflow.finished,
            children: moment.steps(&workflow.steps),
        })
    }

    /// What keeps it from being as it should be.
    fn reasons(&self) -> Vec<String> {
        let told = self.told();
        let mut reasons: Vec<String> = Vec::new();
        let problems = told.conditions.iter().filter(|known| known.status == FALSE);
        for problem in problems {
            let message = problem.message.trim();
            if !message.is_empty() && !reasons.iter().any(|known| known == message) {
                reasons.push(message.to_owned());
            }
        }
        reasons
    }

    fn notes(&self) -> Vec<Vec<Span>> {
        let is_wrong = self
            .told()
            .conditions
            .iter()
            .any(|known| known.status == FALSE && known.reason == condition::RECONCILE_ERROR);
        let (word, tone) = if is_wrong {
            ("wrong", Tone::Bad)
        } else {
            ("waits", Tone::Active)
        };
        let reasons = self.reasons().into_iter();
        let mut notes: Vec<Vec<Span>> = reasons
            .map(|reason| vec![Span::new(tone, format!("{word}: {reason}"))])
            .collect();
        notes.extend(next_line(&self.next()));
        notes
    }

    fn next(&self) -> Vec<String> {
        let object = match self.namespace() {
            "default" => self.name().to_owned(),
            namespace => format!("{} -n {namespace}", self.name()),
        };
        if self.is_complete() {
            return Vec::new();
        }
        let mut commands = vec![format!("bellwether status app/{object} -w")];
        let told = self.told();
        if told.phase == phase::WORKFLOW_SUSPENDING {
            commands.insert(0, format!("bellwether workflow resume {object}"));
        }
        if told.services.iter().any(|service| !service.healthy) {
            commands.push(format!("bellwether app logs {object}"));
        }
        let number = told.latest_revision.map_or(0, |revision| revision.revision);
        if number > 1 {
            commands.push(format!("bellwether app rollback {object}"));
        }
        commands
    }

    /// The same for programs.
    pub fn document(&self) -> Value {
        let told = self.told();
        let resources: Vec<Value> = self
            .resources
            .iter()
            .map(|entry| {
                json!({
                    "cluster": cluster_name(&entry.cluster), "component": entry.component,
                    "trait": entry.resource_trait, "apiVersion": entry.api_version,
                    "kind": entry.kind, "namespace": entry.namespace, "name": entry.name,
                })
            })
            .collect();
        json!({
            "name": self.name(), "namespace": self.namespace(),
            "phase": told.phase, "isCurrent": self.is_current(),
            "revision": told.latest_revision.map(|revision| revision.name),
            "components": told.services, "workflow": told.workflow,
            "resources": resources, "reasons": self.reasons(), "next": self.next(),
        })
    }
}

fn state(is_healthy: bool, is_pending: bool) -> Span {
    match (is_healthy, is_pending) {
        (true, _) => Span::new(Tone::Good, "healthy"),
        (false, true) => Span::new(Tone::Active, "waits"),
        (false, false) => Span::new(Tone::Bad, "not healthy"),
    }
}

/// A message in one line: a tree has no room for more.
pub(super) fn one_line(message: &str) -> String {
    let mut line = String::new();
    for part in message
        .lines()
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let between = match line.chars().last() {
            None => "",
            Some(':') => " ",
            Some(_) => "; ",
        };
        line.push_str(between);
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(status: &Value) -> ApplicationSnapshot {
        let application = json!({
            "metadata": {"name": "shop", "namespace": "apps", "generation": 2},
            "spec": {"components": [
                {"name": "web", "type": "webservice", "traits": [{"type": "gateway"}]},
                {"name": "db", "type": "statefulset"}]},
            "status": status,
        });
        let entry = |component: &str, trait_type: &str, kind: &str, cluster: &str| {
            json!({"cluster": cluster, "component": component, "trait": trait_type,
                "apiVersion": "v1", "kind": kind, "namespace": "apps", "name": component})
        };
        let tracker = json!({"metadata": {"name": "shop-v2-apps"}, "spec": {
            "type": "versioned", "applicationGeneration": 2, "managedResources": [
                entry("web", "", "Deployment", ""), entry("web", "gateway", "Ingress", ""),
                entry("db", "", "StatefulSet", "east"), entry("db", "", "StatefulSet", "west")]}});
        ApplicationSnapshot::new(
            serde_json::from_value(application).unwrap(),
            vec![serde_json::from_value(tracker).unwrap()],
        )
    }

    #[test]
    fn the_tree_has_components_traits_objects_and_what_it_waits_for() {
        let told = snapshot(&json!({
            "status": "runningWorkflow", "observedGeneration": 2,
            "latestRevision": {"name": "shop-v2", "revision": 2},
            "conditions": [{"type": "Ready", "status": "False", "reason": "Progressing",
                "message": "component db is not healthy yet on west", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "services": [
                {"name": "web", "namespace": "apps", "healthy": true, "message": "Ready:1/1",
                    "traits": [{"type": "gateway", "healthy": true}]},
                {"name": "db", "namespace": "apps", "cluster": "east", "healthy": true},
                {"name": "db", "namespace": "apps", "cluster": "west", "healthy": false, "message": "Ready:0/1"}],
        }));
        let expected = "\
application apps/shop   runningWorkflow   revision shop-v2
├─ component web (webservice)   healthy   Ready:1/1
│  ├─ Deployment apps/web   on local
│  └─ trait gateway   healthy
│     └─ Ingress apps/web   on local
└─ component db (statefulset)
   ├─ on east   healthy
   │  └─ StatefulSet apps/db   on east
   └─ on west   not healthy   Ready:0/1
      └─ StatefulSet apps/db   on west
waits: component db is not healthy yet on west
next: bellwether status app/shop -n apps -w · bellwether app logs shop -n apps · bellwether app rollback shop -n apps
";
        assert_eq!(told.status().render(false), expected);
        assert!(!told.is_complete());
    }

    #[test]
    fn places_on_one_cluster_are_told_apart_by_namespace() {
        let mut told = snapshot(&json!({
            "status": "running", "observedGeneration": 2,
            "services": [
                {"name": "web", "namespace": "apps", "cluster": "local", "healthy": true},
                {"name": "web", "namespace": "prod", "cluster": "local", "healthy": true}],
        }));
        let mut copy = told.resources[0].clone();
        copy.namespace = "prod".to_owned();
        told.resources.push(copy);
        let text = told.status().render(false);
        let expected = "\
├─ component web (webservice)
│  ├─ on local, in apps   healthy
│  │  └─ Deployment apps/web   on local
│  └─ on local, in prod   healthy
│     └─ Deployment prod/web   on local
";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_not_delivered_yet_says_so() {
        let told = snapshot(&json!({
            "status": "rendering", "observedGeneration": 2,
            "conditions": [{"type": "Parsed", "status": "False", "reason": "ReconcileError",
                "message": "component db: there is no ComponentDefinition", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }));
        let text = told.status().render(false);
        assert!(
            text.contains("component db (statefulset)   not applied yet"),
            "{text}"
        );
        assert!(
            text.contains("wrong: component db: there is no ComponentDefinition\n"),
            "{text}"
        );
    }

    #[test]
    fn a_change_that_the_hub_has_not_seen_is_said() {
        let told = snapshot(&json!({"status": "running", "observedGeneration": 1}));
        let text = told.status().render(false);
        assert!(
            text.starts_with("application apps/shop   running, changed since\n"),
            "{text}"
        );
        assert!(!told.is_complete());
    }

    #[test]
    fn a_message_of_several_lines_is_one_line_in_a_tree() {
        let message = "component web cannot be rendered\nParameter errors:\n  parameter.image: incomplete value string\n";
        let expected = "component web cannot be rendered; Parameter errors: parameter.image: incomplete value string";
        assert_eq!(one_line(message), expected);
        assert_eq!(one_line(" Ready:1/1\n"), "Ready:1/1");
    }
}
