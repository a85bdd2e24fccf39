//! `bellwether status`: where something stands, as a tree.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::multicluster::Work;
use bellwether_api::work::ManifestWork;
use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_ctl::explain::{
    APPLICATION, Explainer, POLICY, REPLICA_SET, Snapshot, Source, WORKFLOW_RUN,
    application_triggers, explainer, kind_and_name, policy_triggers, rollout_triggers,
    run_triggers,
};
use bellwether_runtime::{Cache, Selection};
use clap::Args;
use kube::Api;
use tokio::sync::Notify;

use crate::cli::{is_pipe_broken, say};
use crate::connect::ConnectArgs;
use crate::print::PrintArgs;
use crate::screen::{self, Screen};

/// How long changes are gathered before they are shown.
const GATHER: Duration = Duration::from_millis(200);
/// How often times that run are drawn again on a terminal.
const TICK: Duration = Duration::from_secs(1);

/// Show where an application, a workflow run, a work, a policy or a rollout stands.
///
/// Of an application: components with their traits and objects on each cluster, steps, what it waits for.
/// Of a workflow run: its steps, how long they took, what they wait for and since when, when they are tried again.
/// Of a ManifestWorkReplicaSet (mwrs): every cluster in its group, which ones are done, soak, fail and
/// wait, why, and what to do next. Of a policy: every cluster, whether it enforces, complies,
/// waits or fails. Of a work: what its member reports of each manifest.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether status app/shop\n  bellwether status workflowrun/release-1 -w\n  bellwether status mwrs/web\n  bellwether status mwrs/web -n apps -w\n  bellwether status mwrs/web -o json\n  bellwether status work/web -n cluster1\n  bellwether status policy/limits -n policies -w"
)]
pub(crate) struct StatusArgs {
    /// The object: app/NAME, workflowrun/NAME, work/NAME, manifestwork/NAME, mwrs/NAME or policy/NAME; NAME alone is an application.
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// The namespace; that of a work is named after its cluster.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Follow changes: until a rollout is complete, or Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// What is shown is a tree in any case.
    #[arg(long, hide = true)]
    tree: bool,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: StatusArgs) -> anyhow::Result<()> {
    // A name alone is that of an application.
    let object = if arguments.object.contains('/') {
        arguments.object.clone()
    } else {
        format!("app/{}", arguments.object)
    };
    let (kind, name) = kind_and_name(&object)?;
    let explainer = explainer(&kind)?;
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    let subject = Subject {
        explainer,
        name,
        connection,
        arguments: &arguments,
    };
    if arguments.watch {
        return subject.follow(&kind).await;
    }
    let snapshot = subject.read().await?;
    subject.show(&snapshot)
}

/// What is shown, and how.
struct Subject<'a> {
    explainer: &'a Explainer,
    name: &'a str,
    connection: Connection,
    arguments: &'a StatusArgs,
}

impl Subject<'_> {
    async fn read(&self) -> anyhow::Result<Snapshot> {
        let source = Source {
            client: &self.connection.client,
            namespace: &self.connection.namespace,
            members: &self.arguments.connect,
            now: Clock::system().now(),
        };
        Ok((self.explainer.read)(source, self.name).await?)
    }

    fn show(&self, snapshot: &Snapshot) -> anyhow::Result<()> {
        if self.arguments.print.is_table() {
            say(text(snapshot).trim_end());
            return Ok(());
        }
        self.arguments.print.print(&snapshot.document(), &[])
    }

    /// Shows it again with every change.
    async fn follow(&self, kind: &str) -> anyhow::Result<()> {
        let is_live = self.arguments.print.is_table() && screen::is_terminal();
        let changed = Arc::new(Notify::new());
        // A wrong name is an error, rather than a wait without end.
        let mut snapshot = self.read().await?;
        let _watches = self.watch(kind, &changed);
        let mut screen = Screen::default();
        let mut known = Vec::new();
        loop {
            if is_live {
                screen.draw(&text(&snapshot));
            } else if self.arguments.print.is_table() {
                known = screen::print_new(&known, snapshot.lines());
            } else {
                let lines = snapshot.lines();
                if lines != known {
                    self.show(&snapshot)?;
                    known = lines;
                }
            }
            if snapshot.is_complete() || is_pipe_broken() {
                return Ok(());
            }
            if is_live {
                let _ = tokio::time::timeout(TICK, changed.notified()).await;
            } else {
                changed.notified().await;
            }
            tokio::time::sleep(GATHER).await;
            snapshot = self.read().await?;
        }
    }

    /// Watches what it depends on, until the result is dropped.
    fn watch(&self, kind: &str, changed: &Arc<Notify>) -> Box<dyn std::any::Any> {
        let Connection { client, namespace } = &self.connection;
        if REPLICA_SET.contains(&kind) {
            return Box::new(rollout_triggers(client, namespace, changed));
        }
        if APPLICATION.contains(&kind) {
            return Box::new(application_triggers(client, namespace, self.name, changed));
        }
        if POLICY.contains(&kind) {
            return Box::new(policy_triggers(client, namespace, self.name, changed));
        }
        if WORKFLOW_RUN.contains(&kind) {
            return Box::new(run_triggers(client, namespace, self.name, changed));
        }
        let selection = Selection::fields(&format!("metadata.name={}", self.name));
        let [large, small] = [(); 2].map(|()| Arc::clone(changed));
        let works: Api<ManifestWork> = Api::namespaced(client.clone(), namespace);
        let small_works: Api<Work> = Api::namespaced(client.clone(), namespace);
        Box::new((
            Cache::start(works, selection.clone(), move |_| large.notify_one()),
            Cache::start(small_works, selection, move |_| small.notify_one()),
        ))
    }
}

fn text(snapshot: &Snapshot) -> String {
    let colours = screen::has_colours();
    let trees = snapshot.status().into_iter();
    trees.map(|tree| tree.render(colours)).collect()
}
