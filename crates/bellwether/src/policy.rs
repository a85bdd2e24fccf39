//! `bellwether policy …`: policies without a cluster; what they mean is in its crate.

use std::fs;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bellwether_json::yaml::to_yaml;
use bellwether_policy::dryrun::{DryRun, MESSAGES, Outcome, run as dry_run};
use clap::{Args, Subcommand};

use crate::cli::ExitCode;

/// Bytes that all files together may have.
const MAX_BYTES: u64 = 100 * 1024 * 1024;

/// Arguments of `bellwether policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Dryrun(Box<DryrunArgs>),
}

/// Evaluate a policy against objects from files, and print what is wrong.
///
/// Nothing is changed. The exit code is 0 for a compliant policy, 2 for one that is not, and 1 for
/// errors.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  bellwether policy dryrun --policy examples/policy/dryrun/policy.yaml examples/policy/dryrun/cluster.yaml"
)]
struct DryrunArgs {
    /// File with a ConfigurationPolicy, or with a Policy that has one
    #[arg(short, long, value_name = "FILE")]
    policy: PathBuf,
    /// File with a status that the result is compared with
    #[arg(short = 'c', long, value_name = "FILE")]
    desired_status: Option<PathBuf>,
    /// File with the kinds that the cluster knows, instead of those of Kubernetes
    #[arg(long, value_name = "FILE", env = "DRYRUN_MAPPINGS_FILE")]
    mappings_file: Option<PathBuf>,
    /// Write the status to this file
    #[arg(long, value_name = "FILE")]
    status_path: Option<PathBuf>,
    /// Write the messages to this file instead of printing them
    #[arg(long, value_name = "FILE")]
    messages_path: Option<PathBuf>,
    /// Print differences of any length in full
    #[arg(long)]
    full_diffs: bool,
    /// Print differences
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    print_diffs: bool,
    /// Print without colours
    #[arg(long)]
    no_colors: bool,
    /// Files and directories with the objects of the cluster; - is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &PolicyArgs) -> anyhow::Result<()> {
    match &arguments.command {
        PolicyCommand::Dryrun(arguments) => dryrun(arguments),
    }
}

fn dryrun(arguments: &DryrunArgs) -> anyhow::Result<()> {
    let policy = read(&arguments.policy)?;
    let mappings = arguments.mappings_file.as_deref().map(read).transpose()?;
    let desired_status = arguments.desired_status.as_deref().map(read).transpose()?;
    let outcome = dry_run(
        &DryRun {
            policy: &policy,
            inputs: inputs(&arguments.inputs)?,
            mappings: mappings.as_deref(),
            desired_status: desired_status.as_deref(),
            has_full_diffs: arguments.full_diffs,
            has_no_colors: arguments.no_colors,
            hides_diffs: !arguments.print_diffs,
        },
        &crate::helm::world()?,
    );
    if let Some(error) = &outcome.error {
        return Err(ExitCode::new(1, format!("Error: {error}")).into());
    }
    write(arguments, &outcome)?;
    if outcome.is_compliant() {
        Ok(())
    } else {
        let message = "Error: policy is NonCompliant".to_owned();
        Err(ExitCode::new(outcome.exit_code(), message).into())
    }
}

fn write(arguments: &DryrunArgs, outcome: &Outcome) -> anyhow::Result<()> {
    if let (Some(path), Some(status)) = (&arguments.status_path, &outcome.status) {
        let text = to_yaml(&serde_json::to_value(status)?);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut text = outcome.output.clone();
    let mut messages = outcome.messages.join("\n");
    if !messages.is_empty() {
        messages.push('\n');
    }
    if let Some(path) = &arguments.messages_path {
        fs::write(path, messages).with_context(|| format!("cannot write {}", path.display()))?;
    } else {
        text.push_str(MESSAGES);
        text.push_str(&messages);
    }
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Reads a file of a bounded size.
fn read(path: &Path) -> anyhow::Result<String> {
    let wrong = || format!("cannot read {}", path.display());
    let size = fs::metadata(path).with_context(wrong)?.len();
    anyhow::ensure!(
        size <= MAX_BYTES,
        "{} is larger than {MAX_BYTES} bytes",
        path.display()
    );
    fs::read_to_string(path).with_context(wrong)
}

/// Reads standard input, if something is piped in, and the files.
fn inputs(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, String)>> {
    let mut inputs = Vec::new();
    let dash = Path::new("-");
    let is_named = paths.iter().any(|path| path == dash);
    if is_named || is_piped() {
        let mut text = String::new();
        let mut input = std::io::stdin().lock().take(MAX_BYTES);
        input
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        inputs.push(("stdin".to_owned(), text));
    }
    for path in paths.iter().filter(|path| *path != dash) {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            let entries =
                fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
            let entries: Result<Vec<_>, _> = entries.collect();
            files = entries?.into_iter().map(|entry| entry.path()).collect();
            files.retain(|file| file.is_file());
            files.sort();
        }
        for file in files {
            let name = format!("file {}", file.display());
            inputs.push((name, read(&file)?));
        }
    }
    Ok(inputs)
}

/// Whether standard input is a file or a pipe, and not a terminal or `/dev/null`.
fn is_piped() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    if std::io::stdin().is_terminal() {
        return false;
    }
    let Ok(input) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return false;
    };
    let kind = fs::File::from(input)
        .metadata()
        .map(|about| about.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo())
}
