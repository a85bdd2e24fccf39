//! `bellwether hub`: the controllers of a hub, on any cluster.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_controllers::Hub;
use bellwether_controllers::registration::clusters::{self, LossThreshold};
use bellwether_controllers::registry::{Entry, HUB, HubOptions, to_rules};
use bellwether_controllers::rights;
use bellwether_ctl::near::did_you_mean_or;
use bellwether_process::diagnostics::{DiagnosticsArgs, Health};
use bellwether_process::election::{ElectionArgs, Term};
use bellwether_process::missing_rights;
use bellwether_process::pace::PaceArgs;
use bellwether_process::signal::stop_signal;
use bellwether_runtime::{
    Clock, ControllerMetrics, Fence, MetricsRegistry, Outage, Pacer, ReconcileError as _, Retry,
    Tasks, with_user_agent,
};
use bellwether_webhook::Keeper;
use clap::Args;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::apply_once::ApplyOnceArgs;
use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::webhook::WebhookArgs;
use crate::workflow::WorkflowArgs;

/// Run the controllers of a hub, in the foreground.
///
/// The hub may be any cluster, embedded or real. CustomResourceDefinitions that it lacks are created
/// first. Several processes may run for one hub: the one that holds the lease acts, the others stand by.
/// `--controllers placement` runs only that controller, `--controllers -placement` all others.
#[derive(Debug, Args)]
#[command(
    after_help = after_help(),
)]
pub(crate) struct HubArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Controllers to run, or with a minus not to run; listed below.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    controllers: Vec<String>,
    /// Users whose clusters join without manual approval.
    #[arg(long, value_name = "USER,…", value_delimiter = ',')]
    auto_approve_users: Vec<String>,
    /// Do not create CustomResourceDefinitions that the hub lacks.
    #[arg(long)]
    skip_definitions: bool,
    #[command(flatten)]
    heartbeats: HeartbeatArgs,
    #[command(flatten)]
    workflows: WorkflowArgs,
    #[command(flatten)]
    apply_once: ApplyOnceArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    webhooks: WebhookArgs,
    #[command(flatten)]
    diagnostics: DiagnosticsArgs,
}

/// What the hub makes of clusters that stop renewing their leases.
#[derive(Debug, Clone, Args)]
pub(crate) struct HeartbeatArgs {
    /// If more than this percentage of the clusters stops renewing at once, and at least three of them,
    /// suspect the hub and taint none of them as unreachable; 100 switches this off.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = LossThreshold::default().percent,
        value_parser = clap::value_parser!(u8).range(0..=100)
    )]
    heartbeat_loss_threshold: u8,
}

impl HeartbeatArgs {
    /// The options of the controller of clusters.
    pub(crate) fn options(&self) -> clusters::Options {
        clusters::Options {
            loss_threshold: LossThreshold {
                percent: self.heartbeat_loss_threshold,
                ..LossThreshold::default()
            },
            ..clusters::Options::default()
        }
    }
}

fn after_help() -> String {
    let width = HUB.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::from("Controllers:\n");
    for Entry { name, about, .. } in HUB {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:width$}  {about}");
    }
    text.push_str("\nExamples:\n  bellwether hub --kubeconfig hub.yaml\n  bellwether hub --kubeconfig hub.yaml --controllers -placement\n  bellwether hub --kubeconfig hub.yaml --auto-approve-users system:serviceaccount:fleet:joiner");
    text
}

/// The name of the lease of a hub's controllers.
pub(crate) const LEASE: &str = "bellwether-hub";

pub(crate) async fn run(arguments: HubArgs) -> anyhow::Result<()> {
    let chosen = chosen(&arguments.controllers)?;
    let (health, registry) = (Health::default(), MetricsRegistry::default());
    arguments.diagnostics.serve(&registry, &health).await?;
    let (client, address) = arguments.connect.client_without_retries().await?;
    let webhooks = arguments.webhooks.bind(&client, &registry).await?;
    let term = HubTerm {
        keeper: webhooks.as_ref().map(|webhooks| webhooks.keeper.clone()),
        client: client.clone(),
        address,
        chosen,
        options: HubOptions {
            auto_approved: arguments.auto_approve_users.iter().cloned().collect(),
            clusters: arguments.heartbeats.options(),
            workflows: arguments.workflows.options()?,
            apply_once: arguments.apply_once.mode,
        },
        skip_definitions: arguments.skip_definitions,
        pacer: arguments.pace.pacer(),
        health: health.clone(),
        metrics: ControllerMetrics::default(),
    };
    term.metrics.register(&registry);
    term.options.clusters.metrics.register(&registry);
    let in_system = system_needed(&term, webhooks.is_some());
    let needed = needed(&term, webhooks.is_some());
    let reporting = tokio::spawn(missing_rights::report(client.clone(), needed, in_system));
    let led = arguments
        .election
        .run(&client, LEASE, &health, &term, stop_signal());
    let serving = async {
        match webhooks {
            Some(webhooks) => webhooks.serve(client.clone()).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        led = led => led,
        served = serving => served.context("the webhook server ended"),
    };
    reporting.abort();
    ended
}

/// The rights that a hub needs in all namespaces, by who needs them.
fn needed(term: &HubTerm, has_webhooks: bool) -> missing_rights::Needed {
    let controllers = term.chosen.iter();
    let mut needed: missing_rights::Needed = controllers
        .map(|entry| (entry.name, entry.rules()))
        .collect();
    if !term.skip_definitions {
        needed.push(("the hub", to_rules(rights::DEFINITIONS)));
    }
    if has_webhooks {
        needed.push((rights::WEBHOOK_SERVER, to_rules(rights::WEBHOOKS)));
    }
    needed
}

/// The rights that a hub needs in the namespace of the system, by who needs them.
fn system_needed(term: &HubTerm, has_webhooks: bool) -> missing_rights::Needed {
    let is_running = |name: &str| {
        term.chosen.iter().any(|entry| entry.name == name)
            || (has_webhooks && name == rights::WEBHOOK_SERVER)
    };
    let needed = rights::IN_SYSTEM_NAMESPACE.iter();
    let needed = needed.filter(|(name, _)| is_running(name));
    needed
        .map(|(name, rights)| (*name, to_rules(rights)))
        .collect()
}

/// The controllers of a hub while this process leads.
struct HubTerm {
    /// Keeps webhooks in order, if there are any.
    keeper: Option<Keeper>,
    client: Client,
    /// Where the hub is, for messages.
    address: String,
    chosen: Vec<Entry>,
    options: HubOptions,
    skip_definitions: bool,
    pacer: Pacer,
    health: Health,
    metrics: ControllerMetrics,
}

impl Term for HubTerm {
    type Prepared = (Hub, Option<Fence>);

    async fn prepare(&self, fence: Option<&Fence>) -> anyhow::Result<Self::Prepared> {
        let client = match fence {
            Some(fence) => fence.guard(self.client.clone()),
            None => self.client.clone(),
        };
        let mut hub = Hub::new(self.pacer.limit(client), Clock::system());
        hub.metrics = self.metrics.clone();
        // Only the process that leads writes definitions. Caches of kinds that are not defined yet begin after that.
        let has_definitions = async || Ok(has_definitions(&self.client).await?);
        // A process that may not read definitions learns more when it leads.
        if self.skip_definitions || self.until_reached(has_definitions).await.unwrap_or(false) {
            self.complete_caches(&hub).await;
        }
        Ok((hub, fence.cloned()))
    }

    async fn lead(&self, (hub, fence): Self::Prepared) -> anyhow::Result<()> {
        if !self.skip_definitions {
            let define =
                async || ensure_definitions(&hub.client, bellwether_api::definitions()).await;
            self.until_reached(define).await?;
        }
        self.complete_caches(&hub).await;
        // Controllers write through the webhooks: these can be called first.
        if let Some(keeper) = &self.keeper {
            let tidy = async || Ok(keeper.tidy(&hub.client).await?);
            self.until_reached(tidy).await?;
        }
        let mut options = self.options.clone();
        options.workflows.fence = fence;
        let mut controllers = start(&hub, &self.chosen, &options);
        if let Some(keeper) = self.keeper.clone() {
            let client = hub.client.clone();
            controllers.spawn("webhook configurations".to_owned(), async move {
                keeper.keep(&client).await;
            });
        }
        let names: Vec<&'static str> = self.chosen.iter().map(|entry| entry.name).collect();
        let ready = hub.metrics.until_ready(&names, |missing| {
            let missing = missing.join(", ");
            self.health
                .set_unready(format!("caches of {missing} are not complete"));
        });
        tokio::select! {
            () = ready => {}
            ended = controllers.ended() => return Err(ended.into()),
        }
        self.health.set_ready("leading");
        let names = names.join(", ");
        say(&format!("the hub is ready; controllers: {names}"));
        Err(controllers.ended().await.into())
    }
}

impl HubTerm {
    /// Starts the caches of all chosen controllers, unless they run, and waits until they are complete.
    async fn complete_caches(&self, hub: &Hub) {
        for entry in &self.chosen {
            entry.start_caches(hub);
        }
        self.health
            .set_unready("caches are not complete; rights that are missing are in the log");
        hub.ready().await;
    }

    /// Tries until the hub has answered. A refusal is an error; an outage is not.
    async fn until_reached<T>(
        &self,
        attempt: impl AsyncFn() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (clock, mut outage) = (Clock::system(), Outage::default());
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) if is_outage(&error) => error,
                Err(error) => return Err(error.context(format!("the hub at {}", self.address))),
            };
            let why = format!("cannot reach the hub at {}: {error:#}", self.address);
            if outage.begins() {
                say(&why);
                tracing::warn!(error = why, "will retry until the hub answers");
            }
            self.health.set_unready(why);
            clock.sleep(OUTAGE_RETRY).await;
        }
    }
}

/// The wait before a hub that did not answer is asked again.
const OUTAGE_RETRY: Duration = Duration::from_secs(1);

/// True for an error that may pass by itself, such as that of a server that is away or busy.
fn is_outage(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    let request = causes.find_map(|cause| cause.downcast_ref::<kube::Error>());
    request.is_some_and(|error| matches!(error.retry(), Retry::Backoff | Retry::After(_)))
}

/// The controllers that a list of names chooses.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Entry>> {
    let find = |name: &str| {
        let all: Vec<&str> = HUB.iter().map(|entry| entry.name).collect();
        all.iter()
            .copied()
            .find(|known| *known == name)
            .with_context(|| {
                format!(
                    "--controllers: there is no controller {name:?}{} Controllers are {}",
                    did_you_mean_or(name, all.iter().copied(), "."),
                    all.join(", ")
                )
            })
    };
    let is_off = |name: &&String| name.starts_with('-');
    let is_everything = names.iter().all(|name| is_off(&name) || name == "*");
    let mut chosen: BTreeSet<&'static str> = BTreeSet::new();
    if is_everything {
        chosen.extend(HUB.iter().map(|entry| entry.name));
    }
    for name in names.iter().filter(|name| *name != "*") {
        match name.strip_prefix('-') {
            Some(off) => chosen.remove(find(off)?),
            None => chosen.insert(find(name)?),
        };
    }
    let entries = HUB.iter().filter(|entry| chosen.contains(entry.name));
    Ok(entries.copied().collect())
}

/// Starts controllers; they end when they are dropped.
pub(crate) fn start(hub: &Hub, chosen: &[Entry], options: &HubOptions) -> Tasks {
    let mut controllers = Tasks::new();
    // Shared caches belong to nobody: their requests do not carry the name of a controller.
    for entry in chosen {
        entry.start_caches(hub);
    }
    for entry in chosen {
        let name = format!("controller {}", entry.name);
        let mut own = hub.clone();
        own.client = with_user_agent(hub.client.clone(), &user_agent(entry));
        controllers.spawn(name, (entry.run)(own, options));
    }
    controllers
}

/// The name of a controller in the audit log of the API server.
fn user_agent(entry: &Entry) -> String {
    format!("bellwether/{} {}", env!("CARGO_PKG_VERSION"), entry.name)
}

fn definitions_api(client: &Client) -> kube::Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    kube::Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// True if a cluster has all definitions of a hub.
async fn has_definitions(client: &Client) -> Result<bool, kube::Error> {
    let (api, all) = (definitions_api(client), ListParams::default());
    let list = api.list_metadata(&all).await?;
    let found: BTreeSet<String> = list.iter().map(ResourceExt::name_any).collect();
    let is_found = |definition: &Value| {
        let name = definition["metadata"]["name"].as_str();
        name.is_some_and(|name| found.contains(name))
    };
    Ok(bellwether_api::definitions().all(|it| is_found(&it)))
}

/// Creates the definitions that a cluster lacks, and waits until they are served.
pub(crate) async fn ensure_definitions(
    client: &Client,
    definitions: impl IntoIterator<Item = Value>,
) -> anyhow::Result<()> {
    let api = definitions_api(client);
    for definition in definitions {
        let name = definition["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if api.get_opt(&name).await?.is_none() {
            let definition: DynamicObject = serde_json::from_value(definition)?;
            match api.create(&PostParams::default(), &definition).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => return Err(error).context(format!("cannot create {name}")),
            }
        }
        let is_served = |definition: Option<&DynamicObject>| {
            let conditions = definition.and_then(|it| it.data["status"]["conditions"].as_array());
            conditions.into_iter().flatten().any(|condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            })
        };
        let served = kube::runtime::wait::await_condition(api.clone(), &name, is_served);
        tokio::time::timeout(Duration::from_secs(30), served)
            .await
            .with_context(|| format!("{name} is not served after 30 seconds"))??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: Result<&[&str], &str>) {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        match (chosen(&names), expected) {
            (Ok(found), Ok(wanted)) => {
                let found: Vec<&str> = found.iter().map(|entry| entry.name).collect();
                assert_eq!(found, wanted, "{names:?}");
            }
            (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (found, wanted) => panic!("{names:?}: {found:?}, not {wanted:?}"),
        }
    }

    #[test]
    fn an_outage_is_not_a_refusal() {
        let refused = |code: u16| {
            let status = kube::core::Status::failure("no", "Reason").with_code(code);
            anyhow::Error::from(kube::Error::Api(Box::new(status))).context("cannot create it")
        };
        for (error, expected) in [
            (refused(503), true),
            (refused(429), true),
            (refused(403), false),
            (refused(422), false),
            (
                kube::Error::Service("connection refused".into()).into(),
                true,
            ),
            (anyhow::anyhow!("it is not served after 30 seconds"), false),
        ] {
            assert_eq!(is_outage(&error), expected, "{error:#}");
        }
    }

    #[test]
    fn controllers_are_chosen_by_name() {
        let all: Vec<&str> = HUB.iter().map(|entry| entry.name).collect();
        assert!(all.is_sorted(), "listed by name, each once: {all:?}");
        let others = all.iter().copied().filter(|it| *it != "placement");
        let others: Vec<&str> = others.collect();
        check(&[], Ok(&all));
        check(&["placement"], Ok(&["placement"]));
        check(&["-placement"], Ok(&others));
        check(&["*", "-placement"], Ok(&others));
        check(
            &["replacement"],
            Err("there is no controller \"replacement\"; did you mean placement?"),
        );
    }
}
