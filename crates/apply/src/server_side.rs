//! The strategy ServerSide: only the fields of the manifest are kept.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::fields::{self, Location, MAX_DEPTH};
use crate::metadata;
use crate::owned_fields::is_owned_by_others;
use crate::plan::{ApplyError, Step};
use crate::target::{IgnoreCondition, IgnoredFields, Live, ServerSide, Target};

/// Decides about an object that the server applies.
pub(crate) fn plan(
    target: &Target<'_>,
    settings: &ServerSide<'_>,
    live: Live<'_>,
) -> Result<Step, ApplyError> {
    let manager = settings.manager;
    let apply = |configuration| Step::Apply {
        configuration,
        manager: manager.to_owned(),
        force: settings.force,
    };
    let own = |live: &Value| target.ownership.patch(live).map_or(Step::Leave, Step::Own);
    let whole = configuration(target);
    if settings.ignore.is_empty() {
        return Ok(match live {
            Live::Present(live) if is_as_applied(target, live, &whole) => own(live),
            Live::Unknown if target.applied_before => Step::Read,
            _ => apply(whole),
        });
    }
    let (mut reduced, ignored) = without(&whole, &settings.ignore)?;
    let hash = hash_of(&reduced);
    let with_hash = |configuration| with_annotation(configuration, settings.hash_annotation, &hash);
    match live {
        Live::Unknown => Ok(Step::Read),
        Live::Absent => Ok(apply(with_hash(whole))),
        Live::Present(live) => {
            let known = live["metadata"]["annotations"][settings.hash_annotation].as_str();
            if known == Some(&*hash) {
                return Ok(own(live));
            }
            for location in ignored {
                // A field that nobody else has would be removed by leaving it out.
                if let Some(value) = fields::value_at(live, &whole, &location)
                    && !is_owned_by_others(live, &whole, &location, manager)
                {
                    fields::put(&mut reduced, &location, value.clone());
                }
            }
            Ok(apply(with_hash(reduced)))
        }
    }
}

/// What is sent: the manifest without owners, marks, and times of creation that are null.
fn configuration(target: &Target<'_>) -> Value {
    let mut object = target.manifest.object.clone();
    metadata::drop_marks(&mut object);
    metadata::set_owners(&mut object, Vec::new());
    target.ownership.label(&mut object);
    drop_null_times(&mut object, 0);
    object
}

fn drop_null_times(value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
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
fn is_as_applied(target: &Target<'_>, live: &Value, configuration: &Value) -> bool {
    let manager = target.strategy.manager();
    if let Some(baseline) = target.baseline {
        let (manifest, settings) = (&target.manifest.object, target.strategy.settings());
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
    if depth > MAX_DEPTH {
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

/// The configuration without the fields that are left to the cluster once it has them, and where they
/// were.
fn without(
    whole: &Value,
    fields: &[IgnoredFields<'_>],
) -> Result<(Value, Vec<Location>), ApplyError> {
    let mut reduced = whole.clone();
    let mut ignored = Vec::new();
    for field in fields {
        // Paths are checked whatever the condition, so that a wrong one is always reported.
        let locations = field.fields.locations(whole)?;
        if field.condition == IgnoreCondition::Present {
            ignored.extend(locations);
        }
    }
    ignored.sort();
    ignored.dedup();
    for location in ignored.iter().rev() {
        fields::remove(&mut reduced, location);
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

fn with_annotation(mut configuration: Value, annotation: &str, text: &str) -> Value {
    if !configuration["metadata"]["annotations"].is_object() {
        configuration["metadata"]["annotations"] = serde_json::json!({});
    }
    configuration["metadata"]["annotations"][annotation] = text.into();
    configuration
}
