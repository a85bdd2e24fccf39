//! `apply`: make objects as manifests say.
//!
//! By default as `kubectl apply` does by itself: what was applied last is remembered in an
//! annotation, and a patch of three documents keeps what others have set. On request the server
//! does it.

use std::io::Write;
use std::time::Duration;

use bellwether_apply::three_way;
use bellwether_patch::managed::is_conflict_only_with;
use http::Method;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::dry_run::DryRun;
use crate::error::Error;
use crate::manifests::Manifest;
use crate::output::{self, Found, Output, compact, name};
use crate::request::{self, JSON, MANAGER, escape, with_query};
use crate::types::{Type, Types};

/// Where a client-side apply remembers what it applied; kubectl's own, so that both can be used.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// What to do about fields that others own.
const CONFLICT_ADVICE: &str = "\
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts";

/// How long a definition of this very apply is waited for until its kind is served.
const RETRY_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// How to apply.
#[derive(Debug, Clone, Default)]
pub struct Apply {
    /// The namespace that was asked for, which manifests may not contradict.
    pub namespace: Option<String>,
    /// Let the server merge.
    pub server_side: bool,
    /// Take fields over from other managers; only with `server_side`.
    pub force_conflicts: bool,
    /// Change nothing.
    pub dry_run: DryRun,
    /// Who owns what is written.
    pub field_manager: Option<String>,
    /// Print the objects in this form instead of what was done.
    pub output: Option<Output>,
}

/// Applies objects one after the other. An object that fails is reported and does not stop the others.
pub async fn run(
    connection: &Connection,
    apply: &Apply,
    manifests: Vec<Manifest>,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let mut types = Types::discover(&connection.client).await?;
    let definitions: Vec<Value> = manifests
        .iter()
        .map(|manifest| &manifest.object)
        .filter(|object| defines(object))
        .cloned()
        .collect();
    let total = manifests.len();
    let mut failures = Vec::new();
    let mut applied = Vec::new();
    for manifest in manifests {
        let object = &manifest.object;
        if types.of(object).is_err() {
            types = discover_again(connection, &definitions, object).await?;
        }
        match apply_one(connection, apply, &types, &manifest).await {
            Ok(done) if apply.output.is_some() => applied.push((done.kind, done.object)),
            Ok(done) => {
                let name = done.kind.named(name(&done.object));
                writeln!(out, "{name} {}{}", done.what, apply.dry_run.note())?;
            }
            Err(error) => failures.push(error),
        }
    }
    if let Some(output) = apply.output.as_ref().filter(|_| !applied.is_empty()) {
        let single = applied.len() == 1;
        for (_, object) in &mut applied {
            output::hide_managed_fields(object);
        }
        let found = Found {
            objects: applied,
            single,
            headers: true,
        };
        output::print(out, output, &found)?;
    }
    Error::sum_up(failures, total, notes)
}

/// What was done with an object.
struct Done {
    kind: Type,
    object: Value,
    what: &'static str,
}

fn defines(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// Asks again what is served; waits for a kind that has just been defined.
async fn discover_again(
    connection: &Connection,
    definitions: &[Value],
    object: &Value,
) -> Result<Types, Error> {
    let expected = definitions
        .iter()
        .any(|definition| definition["spec"]["names"]["kind"] == object["kind"]);
    let wait = async {
        loop {
            let types = Types::discover(&connection.client).await?;
            if !expected || types.of(object).is_ok() {
                return Ok(types);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(RETRY_LIMIT, wait).await {
        Ok(types) => types,
        Err(_) => Types::discover(&connection.client).await,
    }
}

async fn apply_one(
    connection: &Connection,
    apply: &Apply,
    types: &Types,
    manifest: &Manifest,
) -> Result<Done, Error> {
    let mut object = manifest.object.clone();
    let kind = types.of_manifest(manifest)?;
    let namespace = place(
        &mut object,
        kind,
        apply.namespace.as_deref(),
        &connection.namespace,
    )?;
    if name(&object).is_empty() {
        return Err(Error::Usage(format!(
            "error when retrieving current configuration of:\n{}\nfrom server for: \"{}\": resource name may not be empty",
            kind.identified("", namespace.as_deref()),
            manifest.place
        )));
    }
    let request = ApplyRequest {
        connection,
        kind,
        namespace,
        apply,
        place: &manifest.place,
    };
    let (what, object) = if apply.server_side {
        request.server_side(&object).await?
    } else {
        request.client_side(object).await?
    };
    Ok(Done {
        kind: kind.clone(),
        object,
        what,
    })
}

/// Puts an object of a namespace into the one that is meant.
pub(crate) fn place(
    object: &mut Value,
    kind: &Type,
    asked: Option<&str>,
    default: &str,
) -> Result<Option<String>, Error> {
    if !kind.namespaced {
        return Ok(None);
    }
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let namespace = match (own, asked) {
        ("", asked) => asked.unwrap_or(default).to_owned(),
        (own, Some(asked)) if own != asked => {
            return Err(Error::Usage(format!(
                "the namespace from the provided object \"{own}\" does not match the namespace \"{asked}\". You must pass '--namespace={own}' to perform this operation."
            )));
        }
        (own, _) => own.to_owned(),
    };
    object["metadata"]["namespace"] = namespace.as_str().into();
    Ok(Some(namespace))
}

struct ApplyRequest<'a> {
    connection: &'a Connection,
    kind: &'a Type,
    namespace: Option<String>,
    apply: &'a Apply,
    /// The file that the object is in.
    place: &'a str,
}

impl ApplyRequest<'_> {
    fn path(&self, name: Option<&str>, force: &str) -> String {
        let name = name.map(escape);
        let path = self.kind.path(self.namespace.as_deref(), name.as_deref());
        let manager = self.apply.field_manager.as_deref();
        let parameters = [
            ("fieldManager", manager.unwrap_or(MANAGER)),
            ("fieldValidation", "Strict"),
            ("dryRun", self.apply.dry_run.parameter()),
            ("force", force),
        ];
        with_query(&path, &parameters)
    }

    async fn server_side(&self, object: &Value) -> Result<(&'static str, Value), Error> {
        let client = &self.connection.client;
        let send = async |force: bool| {
            let force = if force { "true" } else { "false" };
            let path = self.path(Some(name(object)), force);
            request::write(client, Method::PATCH, &path, APPLY, object).await
        };
        let applied = match send(self.apply.force_conflicts).await {
            // Fields that a client-side apply of ours has set are ours to take over.
            Err(error)
                if self.apply.field_manager.is_none() && is_conflict_with_ourselves(&error) =>
            {
                send(true).await?
            }
            Err(Error::Server {
                code: 409, message, ..
            }) if message.starts_with("Apply failed") => {
                return Err(Error::Usage(format!("{message}\n{CONFLICT_ADVICE}")));
            }
            answer => answer?,
        };
        Ok(("serverside-applied", applied))
    }

    async fn client_side(&self, object: Value) -> Result<(&'static str, Value), Error> {
        let client = &self.connection.client;
        let modified = three_way::with_last_applied(object, LAST_APPLIED);
        let dry = self.apply.dry_run == DryRun::Client;
        let name = name(&modified).to_owned();
        let path = self
            .kind
            .path(self.namespace.as_deref(), Some(&escape(&name)));
        let current = match request::get(client, &path, JSON).await {
            Err(error) if error.is_not_found() && dry => return Ok(("created", modified)),
            Err(error) if error.is_not_found() => {
                let path = self.path(None, "");
                let created = request::write(client, Method::POST, &path, JSON, &modified).await;
                let created = created.map_err(|error| error.when("creating", self.place))?;
                return Ok(("created", created));
            }
            answer => answer?,
        };
        if dry {
            return Ok(("configured", modified));
        }
        let (content_type, changes) = patch(self.kind, &modified, &current)?;
        if changes == json!({}) {
            return Ok(("unchanged", current));
        }
        let path = self.path(Some(&name), "");
        let patched = request::write(client, Method::PATCH, &path, content_type, &changes).await;
        let patched = patched.map_err(|error| {
            let object = self.kind.identified(&name, self.namespace.as_deref());
            let changes = compact(&changes);
            error.when(
                &format!("applying patch:\n{changes}\nto:\n{object}\nfor:"),
                self.place,
            )
        })?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let what = if version(&patched) == version(&current) {
            "unchanged"
        } else {
            "configured"
        };
        Ok((what, patched))
    }
}

/// Whether an apply failed by fields of ours, and of nobody else.
fn is_conflict_with_ourselves(error: &Error) -> bool {
    let Error::Server {
        code: 409, causes, ..
    } = error
    else {
        return false;
    };
    is_conflict_only_with(MANAGER, causes.iter().map(String::as_str))
}

/// The patch that brings `current` to `modified`, and its content type.
fn patch(kind: &Type, modified: &Value, current: &Value) -> Result<(&'static str, Value), Error> {
    let annotation = current["metadata"]["annotations"][LAST_APPLIED].as_str();
    let original: Option<Value> = annotation.and_then(|text| serde_json::from_str(text).ok());
    let names = (&*kind.group, &*kind.version, &*kind.kind);
    let patch = three_way::patch(names, original.as_ref(), modified, current).map_err(|error| {
        let object = kind.named(name(modified));
        Error::Usage(format!("cannot compare {object}: {error}"))
    })?;
    let content_type = if patch.is_strategic { STRATEGIC } else { MERGE };
    Ok((content_type, patch.content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_fields_are_taken_over() {
        let check = |causes: &[&str], expected: bool| {
            let error = Error::Server {
                code: 409,
                reason: "Conflict".to_owned(),
                message: "Apply failed".to_owned(),
                causes: causes.iter().map(|&cause| cause.to_owned()).collect(),
            };
            assert_eq!(is_conflict_with_ourselves(&error), expected, "{causes:?}");
        };
        let (ours, theirs) = (
            "conflict with \"bellwether\" using v1",
            "conflict with \"hpa\" using v1",
        );
        check(&[ours], true);
        check(&[theirs], false);
        check(&[ours, theirs], false);
        check(&[], false);
    }
}
