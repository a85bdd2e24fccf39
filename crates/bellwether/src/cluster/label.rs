//! `bellwether cluster label`

use std::collections::BTreeMap;

use anyhow::Context as _;
use bellwether_api::cluster::ManagedCluster;
use clap::Args;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::check_label;
use crate::cli::say;
use crate::connect::ConnectArgs;

/// Set and remove labels of a cluster.
///
/// Placements select clusters by them. The label cluster.open-cluster-management.io/clusterset is the
/// set of the cluster.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster label edge1 region=emea tier=canary\n  bellwether cluster label edge1 tier=prod --overwrite\n  bellwether cluster label edge1 tier-"
)]
pub(super) struct LabelArgs {
    /// The cluster.
    #[arg(value_name = "NAME")]
    name: String,
    /// Labels to set, as KEY=VALUE, and to remove, as KEY-.
    #[arg(value_name = "KEY=VALUE|KEY-", required = true)]
    changes: Vec<String>,
    /// Replace values that are set already.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(super) async fn run(arguments: LabelArgs) -> anyhow::Result<()> {
    let changes = read(&arguments.changes)?;
    let name = arguments.name.as_str();
    let client = arguments.connect.open(None).await?.client;
    let clusters: Api<ManagedCluster> = Api::all(client);
    let cluster = clusters.get_opt(name).await?;
    let cluster = cluster
        .with_context(|| format!("there is no cluster {name}: see bellwether cluster list"))?;
    let known = cluster.labels();
    let replaced = changes.iter().find(|(key, value)| {
        let value = value.as_ref();
        value.is_some() && known.get(*key).is_some_and(|known| Some(known) != value)
    });
    if let (Some((key, _)), false) = (replaced, arguments.overwrite) {
        anyhow::bail!(
            "the label {key} of {name} is {} already: --overwrite replaces it",
            known[key]
        );
    }
    let labels: Map<String, Value> = changes
        .into_iter()
        .map(|(key, value)| (key, json!(value)))
        .collect();
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let patched = clusters.patch(name, &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("cannot label {name}"))?;
    say(&format!("{name} is labelled"));
    Ok(())
}

/// The new value of each label; none for one that is removed.
fn read(changes: &[String]) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let change = |text: &String| {
        if let Some((key, value)) = text.split_once('=') {
            check_label(key, value)?;
            return Ok((key.to_owned(), Some(value.to_owned())));
        }
        let key = text
            .strip_suffix('-')
            .with_context(|| format!("{text:?} is neither KEY=VALUE nor KEY-"))?;
        Ok((key.to_owned(), None))
    };
    changes.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, Option<&str>), &str>) {
        match (read(&[text.to_owned()]), expected) {
            (Ok(changes), Ok((key, value))) => {
                let expected = [(key.to_owned(), value.map(str::to_owned))];
                assert_eq!(changes, expected.into(), "{text}");
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (changes, expected) => panic!("{text}: {changes:?}, not {expected:?}"),
        }
    }

    #[test]
    fn labels_are_set_and_removed() {
        check("region=emea", Ok(("region", Some("emea"))));
        check("region=", Ok(("region", Some(""))));
        check("region-", Ok(("region", None)));
        check("region", Err("neither KEY=VALUE nor KEY-"));
        check("region=a b", Err("is not valid"));
    }
}
