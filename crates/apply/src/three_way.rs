//! The strategy ThreeWay: an object is patched by what changed since it was last applied, as
//! `kubectl apply` does. What was last applied is in an annotation of the object, or remembered by the
//! caller; what others added stays.

use bellwether_json::equality::semantic_eq;
use bellwether_json::marshal;
use bellwether_patch::{merge, strategic, three_way};
use serde_json::{Map, Value, json};

use crate::fields;
use crate::plan::{ApplyError, Patch, Step, creation};
use crate::target::{Live, Target};
use crate::update;

/// How long a text is that is kept in an annotation, in bytes: all annotations of an object may have
/// 256 KiB.
const ANNOTATION_LIMIT: usize = 200 * 1024;

/// Settings of a three-way patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreeWay<'a> {
    /// The annotation that has what was last applied; with none, nothing is written to the object.
    pub annotation: Option<&'a str>,
    /// What was last applied, where no annotation of ours has it.
    pub recorded: Option<&'a Value>,
    /// An annotation of another client that has it where ours is missing.
    pub fallback: Option<&'a str>,
    /// JSONPaths of fields that cannot be changed: an object that differs in one is deleted and
    /// created again.
    pub recreate: &'a [String],
    /// Whether the object is replaced instead of patched.
    pub replace: bool,
}

impl ThreeWay<'_> {
    /// Returns what was applied last, by the annotations of an object.
    fn last_applied(&self, live: &Value) -> Option<Value> {
        let annotations = &live["metadata"]["annotations"];
        let read = |annotation: &str| serde_json::from_str(annotations[annotation].as_str()?).ok();
        let own = self.annotation.and_then(read);
        own.or_else(|| self.recorded.cloned())
            .or_else(|| self.fallback.and_then(read))
    }

    /// An object with what it is in the annotation, if there is one and the text is not too long.
    fn remembering(&self, object: Value) -> Value {
        let Some(annotation) = self.annotation else {
            return object;
        };
        let mut object = with_last_applied(object, annotation);
        let annotations = &mut object["metadata"]["annotations"];
        let is_long = |text: &str| text.len() > ANNOTATION_LIMIT;
        if annotations[annotation].as_str().is_some_and(is_long)
            && let Some(annotations) = annotations.as_object_mut()
        {
            annotations.remove(annotation);
        }
        object
    }
}

/// Decides about an object that is patched.
pub(crate) fn plan(
    target: &Target<'_>,
    settings: &ThreeWay<'_>,
    live: Live<'_>,
) -> Result<Step, ApplyError> {
    let live = match live {
        Live::Unknown if target.applied_before => return Ok(Step::Read),
        Live::Unknown | Live::Absent => {
            return Ok(Step::Create(settings.remembering(creation(target)?)));
        }
        Live::Present(live) => live,
    };
    let manifest = target.manifest;
    let mut modified = manifest.object.clone();
    if manifest.kind == "Secret" && manifest.group.is_empty() {
        update::fold_string_data(&mut modified)?;
    }
    target.ownership.mark(&mut modified);
    target.ownership.list(&mut modified, live);
    let modified = settings.remembering(modified);
    for path in settings.recreate {
        if differs_at(&modified, live, path)? {
            return Ok(Step::Recreate {
                uid: live["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                object: modified,
            });
        }
    }
    let is_as_written = target.baseline.is_some_and(|baseline| {
        baseline.holds(&manifest.object, &target.strategy.settings(), live)
    });
    if settings.replace {
        let annotation = |object: &Value| {
            let annotations = &object["metadata"]["annotations"];
            settings.annotation.map(|key| annotations[key].clone())
        };
        let is_applied = annotation(&modified) == annotation(live)
            && (is_as_written || update::covers(&modified, live));
        return Ok(if is_applied {
            Step::Leave
        } else {
            Step::Replace(replacing(modified, live))
        });
    }
    let original = settings.last_applied(live);
    let kind: Kind<'_> = (&manifest.group, &manifest.version, &manifest.kind);
    let patch = patch(kind, original.as_ref(), &modified, live).map_err(ApplyError::Compare)?;
    Ok(if is_as_written || changes_nothing(&patch, kind, live) {
        Step::Leave
    } else {
        Step::Patch(patch)
    })
}

/// The object as it replaces a live one, which has not been changed meanwhile.
fn replacing(mut object: Value, live: &Value) -> Value {
    for field in ["uid", "resourceVersion"] {
        if let Some(value) = live["metadata"].get(field) {
            object["metadata"][field] = value.clone();
        }
    }
    object
}

fn differs_at(wanted: &Value, live: &Value, path: &str) -> Result<bool, ApplyError> {
    let path = fields::relaxed(path);
    let wanted = fields::find(wanted, &path, Value::clone)?;
    let live = fields::find(live, &path, Value::clone)?;
    let is_same = |(wanted, live): (&Value, &Value)| semantic_eq(wanted, live);
    // A field that the manifest leaves to the server does not differ.
    Ok(
        !wanted.is_empty()
            && (wanted.len() != live.len() || !wanted.iter().zip(&live).all(is_same)),
    )
}

/// Returns an object with itself in an annotation, as the text that `kubectl apply` writes.
pub fn with_last_applied(mut object: Value, annotation: &str) -> Value {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove(annotation);
    }
    let text = marshal::to_json(&sorted(&object)) + "\n";
    object["metadata"]["annotations"][annotation] = text.into();
    object
}

/// A value whose keys are in order; it is as deep as what was read, which is bounded.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Group, version and kind.
type Kind<'a> = (&'a str, &'a str, &'a str);

/// Returns true if a live object is what a patch makes of it: one that only says in which order items
/// are may come of what others added.
fn changes_nothing(patch: &Patch, kind: Kind<'_>, live: &Value) -> bool {
    if patch.content.as_object().is_some_and(Map::is_empty) {
        return true;
    }
    let known = bellwether_kinds::find_kind(kind.0, kind.1, kind.2);
    let patched = if let Some(known) = known.filter(|_| patch.is_strategic) {
        strategic::apply(live.clone(), patch.content.clone(), &known.schema()).ok()
    } else {
        let mut patched = live.clone();
        let applied = merge::apply(&mut patched, patch.content.clone());
        applied.is_ok().then_some(patched)
    };
    patched.is_some_and(|patched| semantic_eq(&patched, live))
}

/// Returns the patch that brings a live object of a kind (group, version, kind) to `modified`, given
/// what was last applied. Lists of built-in kinds are merged by their keys.
pub fn patch(
    kind: Kind<'_>,
    original: Option<&Value>,
    modified: &Value,
    live: &Value,
) -> Result<Patch, String> {
    if let Some(known) = bellwether_kinds::find_kind(kind.0, kind.1, kind.2) {
        let original = original.unwrap_or(&Value::Null);
        let content = three_way::strategic_patch(original, modified, live, &known.schema());
        return Ok(Patch {
            is_strategic: true,
            content: content.map_err(|error| error.to_string())?,
        });
    }
    let nothing = json!({});
    let content = three_way::merge_patch(original.unwrap_or(&nothing), modified, live);
    Ok(Patch {
        is_strategic: false,
        content: content.map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests;
