//! `bellwether cluster …`: members of a fleet, one by one.

mod accept;
mod detach;
mod join;
mod label;
mod list;
mod taint;

use std::collections::BTreeMap;

use anyhow::Context as _;
use bellwether_json::name::{dns_label_problems, label_key_problems, label_value_problems};
use clap::{Args, Subcommand};

/// Join, list, label and detach clusters.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Ask a hub to let a cluster join.
    Join(join::JoinArgs),
    /// Accept clusters that ask to join.
    Accept(accept::AcceptArgs),
    /// Show the clusters of a hub.
    List(list::ListArgs),
    /// Set and remove labels of a cluster.
    Label(label::LabelArgs),
    /// Set and remove taints of a cluster.
    Taint(taint::TaintArgs),
    /// Detach clusters, after what they run for the hub has been removed.
    Detach(detach::DetachArgs),
}

pub(crate) async fn run(arguments: ClusterArgs) -> anyhow::Result<()> {
    match arguments.command {
        ClusterCommand::Join(arguments) => join::run(arguments).await,
        ClusterCommand::Accept(arguments) => accept::run(arguments).await,
        ClusterCommand::List(arguments) => list::run(arguments).await,
        ClusterCommand::Label(arguments) => label::run(arguments).await,
        ClusterCommand::Taint(arguments) => taint::run(arguments).await,
        ClusterCommand::Detach(arguments) => detach::run(arguments).await,
    }
}

/// Checks the name of a cluster, which is also that of its namespace on the hub.
pub(crate) fn check_cluster_name(name: &str) -> anyhow::Result<()> {
    let problems = dns_label_problems(name);
    anyhow::ensure!(
        problems.is_empty(),
        "--cluster-name: {name:?} cannot be the name of a cluster, which is also that of its namespace: {}",
        problems.join("; ")
    );
    Ok(())
}

/// Reads labels as `KEY=VALUE`.
pub(crate) fn read_labels(pairs: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .with_context(|| format!("{text:?} is not a label, such as region=emea"))?;
        check_label(key, value)?;
        Ok((key.to_owned(), value.to_owned()))
    };
    pairs.iter().map(pair).collect()
}

/// Checks a label before it is sent.
fn check_label(key: &str, value: &str) -> anyhow::Result<()> {
    let problems: Vec<String> = label_key_problems(key)
        .into_iter()
        .chain(label_value_problems(value))
        .collect();
    anyhow::ensure!(
        problems.is_empty(),
        "the label {key}={value} is not valid: {}",
        problems.join("; ")
    );
    Ok(())
}
