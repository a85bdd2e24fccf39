//! The strategy ServerSideApply: only the fields of the manifest are kept.

use std::fmt::Write as _;

use bellwether_api::work::names::{FIELD_MANAGER, annotation};
use bellwether_api::work::{IgnoreField, IgnoreFieldsCondition, ServerSideApply, UpdateStrategy};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::owned_fields::is_owned_by_others;
use super::{ApplyError, Live, Step, Target, ignore, metadata};
use crate::ownership;

/// Decides about an object that the server applies.
pub(super) fn plan(target: &Target<'_>, live: Live<'_>) -> Result<Step, ApplyError> {
    let nothing = ServerSideApply::default();
    let settings = target
        .strategy
        .and_then(|strategy| strategy.server_side_apply.as_ref())
        .unwrap_or(&nothing);
    let manager = manager(target.strategy);
    if !manager.starts_with(FIELD_MANAGER) {
        return Err(ApplyError::FieldManager(manager.to_owned()));
    }
    let apply = |configuration| Step::Apply {
        configuration,
        manager: manager.to_owned(),
        force: settings.force,
    };
    let whole = configuration(&target.manifest.object);
    if settings.ignore_fields.is_empty() {
        return Ok(match live {
            Live::Present(live) if is_as_applied(target, live, &whole, manager) => {
                ownership::patch(live, target.owner, target.owned).map_or(Step::Leave, Step::Own)
            }
            Live::Unknown if target.applied_before => Step::Read,
            _ => apply(whole),
        });
    }
    let reduced = without(&whole, &settings.ignore_fields)?;
    let hash = hash_of(&reduced.0);
    match live {
        Live::Unknown => Ok(Step::Read),
        Live::Absent => Ok(apply(with_hash(whole, &hash))),
        Live::Present(live) => {
            let known = live["metadata"]["annotations"][annotation::CONFIG_SPEC_HASH].as_str();
            if known == Some(&*hash) {
                let owners = ownership::patch(live, target.owner, target.owned);
                return Ok(owners.map_or(Step::Leave, Step::Own));
            }
            let (mut reduced, ignored) = reduced;
            for location in ignored {
                // A field that nobody else has would be removed by leaving it out.
                if let Some(value) = ignore::value_at(live, &whole, &location)
                    && !is_owned_by_others(live, &whole, &location, manager)
                {
                    ignore::put(&mut reduced, &location, value.clone());
                }
            }
            Ok(apply(with_hash(reduced, &hash)))
        }
    }
}

/// In whose name fields are applied.
pub(super) fn manager(strategy: Option<&UpdateStrategy>) -> &str {
    strategy
        .and_then(|strategy| strategy.server_side_apply.as_ref())
        .and_then(|settings| settings.field_manager.as_deref())
        .filter(|manager| !manager.is_empty())
        .unwrap_or(FIELD_MANAGER)
}

/// What to remember with the manifest of an applied object.
pub(super) fn settings_text(settings: Option<&ServerSideApply>) -> String {
    let (manager, force) = settings.map_or((None, false), |settings| {
        (settings.field_manager.as_deref(), settings.force)
    });
    format!(
        "ServerSideApply {} {force}",
        manager.unwrap_or(FIELD_MANAGER)
    )
}

/// What is sent: the manifest without owners, marks, and times of creation that are null.
fn configuration(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    metadata::drop_marks(&mut object);
    metadata::set_owners(&mut object, Vec::new());
    drop_null_times(&mut object, 0);
    object
}

fn drop_null_times(value: &mut Value, depth: usize) {
    if depth > ignore::MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(metadata)) = map.get_mut("metadata")
                && metadata
                    .get("creationTimestamp")
                    .is_some_and(Value::is_null)
            {
                metadata.remove("creationTimestamp");
            }
            for value in map.values_mut() {
                drop_null_times(value, depth + 1);
            }
        }
        Value::Array(items) => {
            for value in items {
                drop_null_times(value, depth + 1);
            }
        }
        _ => {}
    }
}

/// Whether an object is what the last apply made of it; after a restart, whether it has all that
/// would be applied, and the server knows us as who applied it.
fn is_as_applied(target: &Target<'_>, live: &Value, configuration: &Value, manager: &str) -> bool {
    let settings = target
        .strategy
        .and_then(|strategy| strategy.server_side_apply.as_ref());
    if let Some(baseline) = target.baseline {
        let (manifest, settings) = (&target.manifest.object, settings_text(settings));
        // What others do to fields of their own is not ours to repair.
        return baseline.holds(manifest, &settings, live)
            || baseline.owns_the_same(manifest, &settings, live, manager)
                && has_all(configuration, live, 0);
    }
    let entries = live["metadata"]["managedFields"].as_array();
    let is_known = entries
        .into_iter()
        .flatten()
        .any(|entry| entry["manager"] == *manager && entry["operation"] == "Apply");
    target.applied_before && is_known && has_all(configuration, live, 0)
}

/// Whether an object has all that a configuration says; in lists others may have items too.
fn has_all(wanted: &Value, live: &Value, depth: usize) -> bool {
    if depth > ignore::MAX_DEPTH {
        return false;
    }
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| {
            live.get(key)
                .map_or(value.is_null(), |live| has_all(value, live, depth + 1))
        }),
        (Value::Array(wanted), Value::Array(live)) => wanted
            .iter()
            .all(|value| live.iter().any(|live| has_all(value, live, depth + 1))),
        _ => bellwether_json::equality::semantic_eq(wanted, live),
    }
}

type Reduced = (Value, Vec<ignore::Location>);

/// The configuration without the fields that are left to the cluster once it has them.
fn without(whole: &Value, fields: &[IgnoreField]) -> Result<Reduced, ApplyError> {
    let mut reduced = whole.clone();
    let mut ignored = Vec::new();
    for field in fields {
        // Paths are checked whatever the condition, so that a wrong one is always told.
        let locations = ignore::locations(whole, field)?;
        if field.condition == IgnoreFieldsCondition::OnSpokePresent {
            ignored.extend(locations);
        }
    }
    ignored.sort();
    ignored.dedup();
    for location in ignored.iter().rev() {
        ignore::remove(&mut reduced, location);
    }
    Ok((reduced, ignored))
}

fn hash_of(configuration: &Value) -> String {
    let digest = Sha256::digest(configuration.to_string().as_bytes());
    digest
        .iter()
        .take(16)
        .fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn with_hash(mut configuration: Value, hash: &str) -> Value {
    if !configuration["metadata"]["annotations"].is_object() {
        configuration["metadata"]["annotations"] = serde_json::json!({});
    }
    configuration["metadata"]["annotations"][annotation::CONFIG_SPEC_HASH] = hash.into();
    configuration
}
