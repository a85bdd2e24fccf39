//! `delete`: remove objects, and see them gone.

use std::io::Write;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::apply::place;
use crate::connection::Connection;
use crate::dry_run::DryRun;
use crate::error::Error;
use crate::manifests::Manifest;
use crate::output::name;
use crate::request::{self, JSON, escape, with_query};
use crate::selection::{Scope, Target, targets};
use crate::types::{Type, Types};
use crate::wait::{self, Goal};

/// What is said before something is deleted by force.
const FORCED: &str = "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.";

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cascade {
    /// They are deleted after their owner.
    Background,
    /// They are deleted before their owner.
    Foreground,
    /// They stay.
    Orphan,
}

/// What to delete, and how.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of a command"
)]
pub struct Delete {
    /// `TYPE NAME…` or `TYPE/NAME…`; or `TYPE` with a selector or `all`.
    pub words: Vec<String>,
    /// Objects of manifests.
    pub objects: Vec<Manifest>,
    /// Where to look.
    pub scope: Scope,
    /// All objects of the type.
    pub all: bool,
    /// What becomes of dependents.
    pub cascade: Cascade,
    /// Seconds that an object has to end; its own if absent.
    pub grace_period: Option<i64>,
    /// Wait until they are gone, for so long; not at all if absent.
    pub wait: Option<Duration>,
    /// Succeed if the object does not exist.
    pub ignore_not_found: bool,
    /// Do not wait for what runs to end.
    pub force: bool,
    /// Change nothing.
    pub dry_run: DryRun,
    /// Print only names.
    pub names: bool,
}

/// An object to delete.
struct Victim {
    /// The manifest that names it.
    place: Option<String>,
    kind: Type,
    namespace: Option<String>,
    name: String,
}

/// Deletes objects, and waits until they are gone. One that cannot be deleted does not stop the
/// others.
pub async fn run(
    connection: &Connection,
    delete: &Delete,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let types = Types::discover(&connection.client).await?;
    let victims = victims(connection, delete, &types).await?;
    if victims.is_empty() {
        writeln!(out, "No resources found")?;
        return Ok(());
    }
    if delete.force && delete.grace_period == Some(0) {
        writeln!(notes, "{FORCED}")?;
    }
    let total = victims.len();
    let (mut deleted, mut failures) = (Vec::new(), Vec::new());
    for victim in victims {
        match remove(connection, delete, &victim).await {
            Err(error) if error.is_not_found() && delete.ignore_not_found => {}
            Err(error) => failures.push(match &victim.place {
                Some(place) => error.when("deleting", place),
                None => error,
            }),
            Ok(uid) => {
                print(out, delete, &victim)?;
                deleted.push((victim, uid));
            }
        }
    }
    out.flush()?;
    if let Some(timeout) = delete.wait.filter(|_| delete.dry_run == DryRun::None) {
        for (victim, uid) in deleted {
            let namespace = victim.namespace.as_deref();
            // Others may create an object of the same name again: it is not the one that was deleted.
            let goal = Goal::Gone { uid };
            let Victim { kind, name, .. } = &victim;
            wait::until(connection, kind, namespace, name, &goal, timeout).await?;
        }
    }
    Error::sum_up(failures, total, notes)
}

fn print(out: &mut dyn Write, delete: &Delete, victim: &Victim) -> std::io::Result<()> {
    if delete.names {
        return writeln!(out, "{}", victim.kind.named(&victim.name));
    }
    let kind = victim.kind.qualified(&victim.kind.singular);
    let how = if delete.force { "force " } else { "" };
    let name = &victim.name;
    writeln!(
        out,
        "{kind} \"{name}\" {how}deleted{}",
        delete.dry_run.note()
    )
}

async fn victims(
    connection: &Connection,
    delete: &Delete,
    types: &Types,
) -> Result<Vec<Victim>, Error> {
    let mut victims = Vec::new();
    for manifest in &delete.objects {
        let mut object = manifest.object.clone();
        let kind = types.of_manifest(manifest)?;
        let namespace = place(&mut object, kind, None, &delete.scope.namespace)?;
        victims.push(Victim {
            place: Some(manifest.place.clone()),
            kind: kind.clone(),
            namespace,
            name: name(&object).to_owned(),
        });
    }
    if delete.words.is_empty() {
        return Ok(victims);
    }
    let scope = &delete.scope;
    let chosen = delete.all || !scope.labels.is_empty() || !scope.fields.is_empty();
    for Target { kind, name } in targets(types, &delete.words)? {
        let Some(name) = name else {
            if !chosen {
                return Err(Error::Usage(
                    "resource(s) were provided, but no name was specified".to_owned(),
                ));
            }
            victims.extend(matching(connection, scope, &kind).await?);
            continue;
        };
        let namespace = kind.namespaced.then(|| scope.namespace.clone());
        victims.push(Victim {
            place: None,
            kind,
            namespace,
            name,
        });
    }
    Ok(victims)
}

/// The objects of a type that a selector finds.
async fn matching(
    connection: &Connection,
    scope: &Scope,
    kind: &Type,
) -> Result<Vec<Victim>, Error> {
    let query = [
        ("labelSelector", scope.labels.as_str()),
        ("fieldSelector", &scope.fields),
    ];
    let path = with_query(&kind.path(scope.namespace(), None), &query);
    let list = request::get(&connection.client, &path, JSON).await?;
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let victim = |object: &Value| Victim {
        place: None,
        kind: kind.clone(),
        namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
        name: name(object).to_owned(),
    };
    Ok(items.iter().map(victim).collect())
}

/// Deletes an object, and returns its uid if the server says it.
async fn remove(
    connection: &Connection,
    delete: &Delete,
    victim: &Victim,
) -> Result<Option<String>, Error> {
    let name = escape(&victim.name);
    let path = victim.kind.path(victim.namespace.as_deref(), Some(&name));
    if delete.dry_run == DryRun::Client {
        let found = request::get(&connection.client, &path, JSON).await?;
        return Ok(uid(&found));
    }
    let mut options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "propagationPolicy": match delete.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        },
    });
    if let Some(seconds) = delete.grace_period {
        options["gracePeriodSeconds"] = seconds.into();
    }
    if delete.dry_run == DryRun::Server {
        options["dryRun"] = json!(["All"]);
    }
    let answer = request::write(&connection.client, Method::DELETE, &path, JSON, &options).await?;
    Ok(uid(&answer))
}

/// The uid in the answer to a deletion: the object while something keeps it, otherwise a Status.
fn uid(answer: &Value) -> Option<String> {
    let of_object = answer["metadata"]["uid"].as_str();
    let found = of_object.or_else(|| answer["details"]["uid"].as_str());
    found.map(str::to_owned)
}
