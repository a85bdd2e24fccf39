//! `bellwether app rollback` and `app revisions`: earlier revisions of an application.

use anyhow::Context as _;
use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{Application, ApplicationRevision};
use bellwether_apiserver::Clock;
use bellwether_application::revision::{last_good, number, restore};
use bellwether_kinds::human;
use clap::Args;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use super::Target;
use crate::cli::say;
use crate::print::{PrintArgs, line};

/// Writes that meet another writer are tried again this often.
const ATTEMPTS: u32 = 10;

#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    target: Target,
    /// The revision: its number, or its name. Without it, the newest one before this that was delivered whole.
    #[arg(long, visible_alias = "revision", value_name = "REVISION")]
    to: Option<String>,
}

async fn revisions(
    target: &Target,
) -> anyhow::Result<(Api<Application>, Vec<ApplicationRevision>)> {
    let connection = target.open().await?;
    let (client, namespace) = (&connection.client, &connection.namespace);
    let api: Api<ApplicationRevision> = Api::namespaced(client.clone(), namespace);
    let own = format!("{}={}", label::APP_NAME, target.name);
    let mut revisions = api.list(&ListParams::default().labels(&own)).await?.items;
    revisions.sort_by_key(number);
    Ok((Api::namespaced(client.clone(), namespace), revisions))
}

fn name(revision: &ApplicationRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

fn has_succeeded(revision: &ApplicationRevision) -> bool {
    let status = revision.status.as_ref();
    status.is_some_and(|status| status.succeeded)
}

/// The revision to go back to.
fn choose<'a>(
    revisions: &'a [ApplicationRevision],
    current: &str,
    wanted: Option<&str>,
) -> anyhow::Result<&'a ApplicationRevision> {
    if let Some(wanted) = wanted {
        let found = revisions.iter().find(|revision| {
            let bare = wanted.trim_start_matches('v');
            name(revision) == wanted || number(revision).to_string() == bare
        });
        return found.with_context(|| {
            let known: Vec<&str> = revisions.iter().map(name).collect();
            format!(
                "there is no revision {wanted}; there are {}",
                known.join(", ")
            )
        });
    }
    let of_current = revisions.iter().find(|revision| name(revision) == current);
    let good = of_current.and_then(|of_current| last_good(revisions, number(of_current)));
    good.with_context(|| {
        format!("no revision before {current} was delivered whole; name one with --to")
    })
}

pub(super) async fn run(arguments: &RollbackArgs) -> anyhow::Result<()> {
    let target = &arguments.target;
    let (api, revisions) = revisions(target).await?;
    for _ in 0..ATTEMPTS {
        let mut application = api
            .get_opt(&target.name)
            .await?
            .with_context(|| format!("there is no application {}", target.name))?;
        let status = application.status.as_ref();
        let current = status.and_then(|status| status.latest_revision.as_ref());
        let current = current.map_or(String::new(), |current| current.name.clone());
        let revision = choose(&revisions, &current, arguments.to.as_deref())?;
        if name(revision) == current {
            say(&format!("application {} is {current} already", target.name));
            return Ok(());
        }
        restore(&mut application, revision)
            .with_context(|| format!("revision {} cannot be read", name(revision)))?;
        match api
            .replace(&target.name, &PostParams::default(), &application)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            written => {
                written?;
                say(&format!(
                    "application {} goes back to {}; follow it with: bellwether status app/{} -w",
                    target.name,
                    name(revision),
                    target.name
                ));
                return Ok(());
            }
        }
    }
    anyhow::bail!("another client keeps changing application {}", target.name)
}

/// Lists the revisions of an application.
pub(super) async fn list(target: &Target, print: PrintArgs) -> anyhow::Result<()> {
    let (api, revisions) = revisions(target).await?;
    let application = api.get_opt(&target.name).await?;
    let status = application.and_then(|application| application.status);
    let current = status.and_then(|status| status.latest_revision);
    let current = current.map_or_else(String::new, |current| current.name);
    let now = Clock::system().now();
    let columns = ["REVISION", "PUBLISH VERSION", "SUCCEEDED", "CURRENT", "AGE"];
    let mut lines = vec![line(columns)];
    let mut documents: Vec<Value> = Vec::new();
    for revision in &revisions {
        let annotations = revision.metadata.annotations.as_ref();
        let version = annotations.and_then(|all| all.get(annotation::PUBLISH_VERSION));
        let created = revision.metadata.creation_timestamp.as_ref();
        let age = created.map_or_else(String::new, |time| {
            human(now.duration_since(time.0).as_secs().max(0))
        });
        let is_current = name(revision) == current;
        lines.push(vec![
            name(revision).to_owned(),
            version.cloned().unwrap_or_default(),
            has_succeeded(revision).to_string(),
            if is_current { "*" } else { "" }.to_owned(),
            age,
        ]);
        documents.push(json!({"name": name(revision), "publishVersion": version,
            "succeeded": has_succeeded(revision), "isCurrent": is_current}));
    }
    print.print(&json!({"revisions": documents}), &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: i64, succeeded: bool) -> ApplicationRevision {
        serde_json::from_value(json!({
            "metadata": {"name": format!("shop-v{number}")},
            "spec": {"application": {"metadata": {}, "spec": {"components": []}}},
            "status": {"succeeded": succeeded},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(current: &str, wanted: Option<&str>, expected: Result<&str, &str>) {
        let all = [
            revision(1, true),
            revision(2, false),
            revision(3, true),
            revision(10, true),
        ];
        match (choose(&all, current, wanted), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(name(found), expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn the_newest_earlier_revision_that_succeeded_is_chosen() {
        check("shop-v10", None, Ok("shop-v3"));
        check("shop-v3", None, Ok("shop-v1"));
        check("shop-v1", None, Err("name one with --to"));
        check("shop-v10", Some("2"), Ok("shop-v2"));
        check("shop-v10", Some("v1"), Ok("shop-v1"));
        check("shop-v10", Some("shop-v3"), Ok("shop-v3"));
        check(
            "shop-v10",
            Some("7"),
            Err("there are shop-v1, shop-v2, shop-v3, shop-v10"),
        );
    }

    #[test]
    fn what_is_restored_has_the_version_that_it_had() {
        let mut application: Application = serde_json::from_value(json!({
            "metadata": {"name": "shop", "annotations": {"app.oam.dev/publishVersion": "beta"}},
            "spec": {"components": [{"name": "a", "type": "worker"}]},
        }))
        .unwrap();
        restore(&mut application, &revision(3, true)).unwrap();
        let annotations = application.metadata.annotations.unwrap();
        assert_eq!(annotations[annotation::ROLLED_BACK_TO], "shop-v3");
        assert!(!annotations.contains_key(annotation::PUBLISH_VERSION));
        assert!(application.spec.components.is_empty());
    }
}
