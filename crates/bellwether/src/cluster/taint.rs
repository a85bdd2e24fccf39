//! `bellwether cluster taint`

use anyhow::Context as _;
use bellwether_api::cluster::{ManagedCluster, Taint, TaintEffect};
use clap::Args;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Set and remove taints of a cluster.
///
/// Placements that do not tolerate a taint give the cluster up (NoSelect), or do not take it if they
/// do not have it yet (NoSelectIfNew). PreferNoSelect is for people to read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster taint edge1 maintenance=soon:NoSelectIfNew\n  bellwether cluster taint edge1 maintenance-"
)]
pub(super) struct TaintArgs {
    /// The cluster.
    #[arg(value_name = "NAME")]
    name: String,
    /// Taints to set, as KEY[=VALUE]:EFFECT, and to remove, as KEY- or KEY:EFFECT-.
    #[arg(value_name = "KEY[=VALUE]:EFFECT|KEY[:EFFECT]-", required = true)]
    changes: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// One change of a list of taints.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    Set(Box<Taint>),
    Remove {
        key: String,
        /// Only the one with this effect; all of that key if none.
        effect: Option<TaintEffect>,
    },
}

pub(super) async fn run(arguments: TaintArgs) -> anyhow::Result<()> {
    let changes: Vec<Change> = arguments
        .changes
        .iter()
        .map(|text| read(text))
        .collect::<Result<_, _>>()?;
    let name = arguments.name.as_str();
    let client = arguments.connect.open(None).await?.client;
    let clusters: Api<ManagedCluster> = Api::all(client);
    let cluster = clusters.get_opt(name).await?;
    let cluster = cluster
        .with_context(|| format!("there is no cluster {name}: see bellwether cluster list"))?;
    let taints = apply(cluster.spec.taints.clone(), &changes)
        .with_context(|| format!("cannot change the taints of {name}"))?;
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": cluster.resource_version()},
        "spec": {"taints": taints},
    }));
    let patched = clusters.patch(name, &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("cannot taint {name}"))?;
    say(&match taints.len() {
        0 => format!("{name} has no taints"),
        1 => format!("{name} has 1 taint"),
        count => format!("{name} has {count} taints"),
    });
    Ok(())
}

fn read(text: &str) -> anyhow::Result<Change> {
    let form = || format!("{text:?} is not a taint, such as maintenance=soon:NoSelect");
    if let Some(rest) = text.strip_suffix('-') {
        let (key, effect) = match rest.split_once(':') {
            Some((key, effect)) => (key, Some(read_effect(effect)?)),
            None => (rest, None),
        };
        return Ok(Change::Remove {
            key: key.to_owned(),
            effect,
        });
    }
    let (head, effect) = text.rsplit_once(':').with_context(form)?;
    let (key, value) = match head.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (head, None),
    };
    anyhow::ensure!(!key.is_empty(), form());
    Ok(Change::Set(Box::new(Taint {
        key: key.to_owned(),
        value,
        effect: read_effect(effect)?,
        ..Taint::default()
    })))
}

fn read_effect(text: &str) -> anyhow::Result<TaintEffect> {
    match TaintEffect::from(text.to_owned()) {
        TaintEffect::Other(_) => anyhow::bail!(
            "{text:?} is not an effect: there are NoSelect, PreferNoSelect and NoSelectIfNew"
        ),
        effect => Ok(effect),
    }
}

/// Changes a list of taints. Those that stay keep the time at which they were added.
fn apply(mut taints: Vec<Taint>, changes: &[Change]) -> anyhow::Result<Vec<Taint>> {
    for change in changes {
        match change {
            Change::Set(new) => {
                let same = |it: &Taint| it.key == new.key && it.effect == new.effect;
                match taints.iter().position(same) {
                    Some(index) if taints[index].value == new.value => {}
                    Some(index) => taints[index] = (**new).clone(),
                    None => taints.push((**new).clone()),
                }
            }
            Change::Remove { key, effect } => {
                let before = taints.len();
                let is_meant = |it: &Taint| {
                    it.key == *key && effect.as_ref().is_none_or(|effect| it.effect == *effect)
                };
                taints.retain(|it| !is_meant(it));
                anyhow::ensure!(taints.len() < before, "there is no taint {key}");
            }
        }
    }
    Ok(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(changes: &[&str], expected: Result<&[&str], &str>) {
        let shown = |taints: Vec<Taint>| -> Vec<String> {
            let show = |it: Taint| {
                let time = if it.time_added.is_some() { " kept" } else { "" };
                format!(
                    "{}={}:{}{time}",
                    it.key,
                    it.value.unwrap_or_default(),
                    it.effect
                )
            };
            taints.into_iter().map(show).collect()
        };
        let live = serde_json::from_value(json!([
            {"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"},
            {"key": "a", "value": "v", "effect": "NoSelectIfNew", "timeAdded": "2026-01-01T00:00:00Z"},
        ]))
        .unwrap();
        let result = changes
            .iter()
            .map(|text| read(text))
            .collect::<Result<Vec<_>, _>>()
            .and_then(|changes| apply(live, &changes));
        match (result, expected) {
            (Ok(taints), Ok(expected)) => assert_eq!(shown(taints), expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (taints, expected) => panic!("{taints:?}, not {expected:?}"),
        }
    }

    #[test]
    fn taints_are_set_and_removed() {
        let second = "a=v:NoSelectIfNew kept";
        check(
            &["b:NoSelect"],
            Ok(&["a=:NoSelect kept", second, "b=:NoSelect"]),
        );
        check(&["a:NoSelect"], Ok(&["a=:NoSelect kept", second]));
        check(&["a=w:NoSelect"], Ok(&["a=w:NoSelect", second]));
        check(&["a:NoSelect-"], Ok(&[second]));
        check(&["a-"], Ok(&[]));
        check(&["c-"], Err("there is no taint c"));
        check(&["a:NoExecute"], Err("is not an effect"));
        check(&["a"], Err("is not a taint"));
    }
}
