//! `apply`, `get`, `delete`, `wait`, `describe`: kubectl's words, for people without it.

#![expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of commands"
)]

use std::io::{stderr, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_apiserver::Clock;
use bellwether_ctl::delete::Cascade;
use bellwether_ctl::wait::Goal;
use bellwether_ctl::{
    Connection, DryRun, Output, Scope, apply, delete, describe, get, read_manifests, wait,
};
use bellwether_json::duration::GoDuration;
use clap::{Args, ValueEnum};

use crate::connect::ConnectArgs;
use crate::vela;

/// The longest time to wait.
const A_WEEK: Duration = Duration::from_hours(7 * 24);

/// Which objects a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScopeArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Label selector, such as app=web,tier!=db.
    #[arg(
        short = 'l',
        long,
        value_name = "LABELS",
        default_value = "",
        hide_default_value = true
    )]
    selector: String,
    /// Field selector, such as metadata.name=web.
    #[arg(
        long,
        value_name = "FIELDS",
        default_value = "",
        hide_default_value = true
    )]
    field_selector: String,
}

impl ScopeArgs {
    async fn open(&self) -> anyhow::Result<(Connection, Scope)> {
        let connection = self.connect.open(self.namespace.as_deref()).await?;
        let scope = Scope {
            namespace: connection.namespace.clone(),
            all_namespaces: self.all_namespaces,
            labels: self.selector.clone(),
            fields: self.field_selector.clone(),
        };
        Ok((connection, scope))
    }
}

/// Create or update objects from manifests.
///
/// Fields that others have set and the manifests do not have are kept.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether apply -f web.yaml\n  bellwether apply -f manifests/ --context cluster1\n  cat web.yaml | bellwether apply -f -"
)]
pub(crate) struct ApplyArgs {
    /// Files, directories, or - for standard input.
    #[arg(short, long, value_name = "PATH", required = true)]
    filename: Vec<PathBuf>,
    /// Read subdirectories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    connect: ConnectArgs,
    /// The namespace of objects that name none.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Let the server merge, and fail on conflicts with other field managers.
    #[arg(long)]
    server_side: bool,
    /// Take fields over from other field managers.
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
    #[command(flatten)]
    mode: DryRunArgs,
    /// The name of the field manager.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
    /// Print the objects instead: name, yaml, json, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…
    #[arg(short, long, value_name = "FORM")]
    output: Option<Output>,
}

/// Show objects.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether get managedclusters\n  bellwether get deploy,pods -A --context cluster1\n  bellwether get pod web -o yaml\n  bellwether get pods -o jsonpath='{.items[*].metadata.name}'"
)]
pub(crate) struct GetArgs {
    /// TYPE, TYPE NAME… or TYPE/NAME…
    #[arg(required = true)]
    objects: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// table, wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Show labels in a column.
    #[arg(long)]
    show_labels: bool,
    /// Show these labels in columns.
    #[arg(short = 'L', long, value_name = "LABELS", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// Print no headers.
    #[arg(long)]
    no_headers: bool,
    /// Sort by the value at a JSONPath.
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
    /// Print the objects, then every change, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// Print only changes, until Ctrl-C.
    #[arg(long)]
    watch_only: bool,
    /// Succeed if the object does not exist.
    #[arg(long)]
    ignore_not_found: bool,
}

/// Delete objects and wait until they are gone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether delete -f web.yaml\n  bellwether delete deployment web\n  bellwether delete pods -l app=web --wait=false"
)]
pub(crate) struct DeleteArgs {
    /// TYPE NAME… or TYPE/NAME…; or TYPE with -l or --all
    objects: Vec<String>,
    /// The objects of files, directories, or - for standard input.
    #[arg(short, long, value_name = "PATH")]
    filename: Vec<PathBuf>,
    /// Read subdirectories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    /// All objects of the type.
    #[arg(long)]
    all: bool,
    /// What happens to dependent objects.
    #[arg(long, value_enum, default_value_t = CascadeArg::Background)]
    cascade: CascadeArg,
    /// Seconds that objects have to terminate.
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<i64>,
    /// Wait until they are gone.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait, such as 30s; 0 means no limit.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    timeout: Duration,
    /// Succeed if the object does not exist.
    #[arg(long)]
    ignore_not_found: bool,
    /// Delete at once, without graceful termination; with --grace-period=0.
    #[arg(long)]
    force: bool,
    /// Give objects one second to terminate.
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,
    #[command(flatten)]
    mode: DryRunArgs,
    /// Print only names.
    #[arg(short, long, value_name = "FORM", value_parser = ["name"])]
    output: Option<String>,
}

/// How much of a change is made.
#[derive(Debug, Clone, Copy, Args)]
struct DryRunArgs {
    /// Change nothing: none, client (print what would be sent) or server (let the server validate).
    #[arg(
        long,
        value_name = "HOW",
        default_value = "none",
        default_missing_value = "server",
        num_args = 0..=1,
        require_equals = true
    )]
    dry_run: DryRun,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CascadeArg {
    /// They are deleted after their owner.
    Background,
    /// They are deleted before their owner.
    Foreground,
    /// They stay.
    Orphan,
}

/// Wait for a condition of objects.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether wait --for=condition=Available deployment/web\n  bellwether wait --for=jsonpath='{.status.phase}'=Running pod/web --timeout=1m\n  bellwether wait --for=delete pod/web"
)]
pub(crate) struct WaitArgs {
    /// TYPE NAME… or TYPE/NAME…; or TYPE with -l or --all
    #[arg(required = true)]
    objects: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// create, delete, condition=TYPE[=STATUS] or jsonpath=TEMPLATE[=VALUE]
    #[arg(long = "for", value_name = "GOAL")]
    goal: Goal,
    /// All objects of the type.
    #[arg(long)]
    all: bool,
    /// How long to wait, such as 30s or 5m; negative means a week.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, allow_hyphen_values = true)]
    timeout: Duration,
}

/// Show objects in detail, with their events.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether describe managedcluster cluster1\n  bellwether describe pods -l app=web --context cluster1"
)]
pub(crate) struct DescribeArgs {
    /// TYPE, TYPE NAME… or TYPE/NAME…
    #[arg(required = true)]
    objects: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) async fn apply(arguments: ApplyArgs) -> anyhow::Result<()> {
    let objects = read_manifests(&arguments.filename, arguments.recursive, "apply")?;
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    let how = apply::Apply {
        namespace: arguments.namespace,
        server_side: arguments.server_side,
        force_conflicts: arguments.force_conflicts,
        dry_run: arguments.mode.dry_run,
        field_manager: arguments.field_manager,
        output: arguments.output,
    };
    Ok(apply::run(&connection, &how, objects, &mut stdout(), &mut stderr()).await?)
}

pub(crate) async fn get(arguments: GetArgs) -> anyhow::Result<()> {
    let (connection, scope) = arguments.scope.open().await?;
    let what = get::Get {
        words: arguments.objects,
        scope,
        output: arguments.output,
        show_labels: arguments.show_labels,
        label_columns: arguments.label_columns,
        no_headers: arguments.no_headers,
        sort_by: arguments.sort_by,
        watch: arguments.watch,
        watch_only: arguments.watch_only,
        ignore_not_found: arguments.ignore_not_found,
    };
    Ok(get::run(&connection, &what, &mut stdout(), &mut stderr()).await?)
}

pub(crate) async fn delete(arguments: DeleteArgs) -> anyhow::Result<()> {
    if arguments.objects.is_empty() && arguments.filename.is_empty() {
        anyhow::bail!("name the objects to delete: TYPE NAME, TYPE/NAME or -f FILE");
    }
    let objects = match &*arguments.filename {
        [] => Vec::new(),
        paths => read_manifests(paths, arguments.recursive, "delete")?,
    };
    let (connection, scope) = arguments.scope.open().await?;
    let forever = arguments.timeout.is_zero();
    let what = delete::Delete {
        words: arguments.objects,
        objects,
        scope,
        all: arguments.all,
        cascade: match arguments.cascade {
            CascadeArg::Background => Cascade::Background,
            CascadeArg::Foreground => Cascade::Foreground,
            CascadeArg::Orphan => Cascade::Orphan,
        },
        grace_period: if arguments.now {
            Some(1)
        } else {
            arguments.grace_period
        },
        wait: arguments
            .wait
            .then_some(if forever { A_WEEK } else { arguments.timeout }),
        ignore_not_found: arguments.ignore_not_found,
        force: arguments.force,
        dry_run: arguments.mode.dry_run,
        names: arguments.output.is_some(),
    };
    let deleted = delete::run(&connection, &what, &mut stdout(), &mut stderr()).await;
    Ok(deleted.map_err(|error| vela::explained(error, &what.words))?)
}

pub(crate) async fn wait(arguments: WaitArgs) -> anyhow::Result<()> {
    let (connection, scope) = arguments.scope.open().await?;
    let what = wait::Wait {
        words: arguments.objects,
        scope,
        all: arguments.all,
        goal: arguments.goal,
        timeout: arguments.timeout,
    };
    Ok(wait::run(&connection, &what, &mut stdout()).await?)
}

pub(crate) async fn describe(arguments: DescribeArgs) -> anyhow::Result<()> {
    let (connection, scope) = arguments.scope.open().await?;
    let now = Clock::system().now();
    let words = &arguments.objects;
    Ok(describe::run(
        &connection,
        words,
        &scope,
        now,
        &mut stdout(),
        &mut stderr(),
    )
    .await?)
}

/// A time as kubectl takes it: `30s`, `1m30s`; a plain number is seconds, a negative one a week.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    if text.starts_with('-') {
        return Ok(A_WEEK);
    }
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed: GoDuration = text
        .parse()
        .with_context(|| format!("{text:?} is not a time such as 30s or 5m"))?;
    Ok(Duration::try_from(parsed.to_signed())?)
}
