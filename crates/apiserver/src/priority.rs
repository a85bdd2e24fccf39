//! The priority of pods, by the PriorityClasses of the cluster.

use bellwether_store::Range;
use serde_json::Value;

use crate::context::RequestContext;
use crate::metadata;
use crate::resource::key_prefix;
use crate::status::ApiError;

/// Gives a pod the priority of the class that it names, or of the cluster's default class.
pub(crate) fn assign(cx: &RequestContext, pod: &mut Value) -> Result<(), ApiError> {
    let class = class_of(cx, pod);
    bellwether_kinds::set_priority(pod, class.as_ref()).map_err(|why| {
        let name = metadata::text(pod, "name");
        ApiError::forbidden(cx.resource.subject(), name, &why)
    })
}

fn class_of(cx: &RequestContext, pod: &Value) -> Option<Value> {
    let prefix = key_prefix("scheduling.k8s.io", "priorityclasses");
    let keyspace = cx.cluster.keyspace();
    match pod["spec"]["priorityClassName"].as_str() {
        Some(name) if !name.is_empty() => {
            let entry = keyspace.get(&format!("{prefix}{name}"))?;
            Some(entry.value.to_untyped_value())
        }
        // Of several defaults the lowest counts.
        _ => keyspace
            .range(Range::prefix(&prefix))
            .ok()?
            .entries
            .iter()
            .map(|entry| entry.value.to_untyped_value())
            .filter(|class| class["globalDefault"] == true)
            .min_by_key(|class| class["value"].as_i64()),
    }
}
