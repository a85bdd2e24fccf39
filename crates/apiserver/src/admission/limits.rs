//! LimitRanges: defaults and bounds for what pods and claims of a namespace ask for.

use bellwether_kinds::{claim_beyond_limits, pod_beyond_limits, set_limits};
use bellwether_store::Range;
use serde_json::Value;

use crate::context::RequestContext;
use crate::metadata;
use crate::status::ApiError;

/// Fills in what containers of a pod leave out.
pub(super) fn fill(cx: &RequestContext, pod: &mut Value) {
    for range in ranges(cx) {
        set_limits(pod, &range);
    }
}

/// Refuses a pod or a claim that asks for what a range does not allow.
pub(super) fn check(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let beyond = match &*cx.resource.plural {
        "pods" => pod_beyond_limits,
        _ => claim_beyond_limits,
    };
    for range in ranges(cx) {
        let errors = beyond(object, &range);
        let why = match errors.as_slice() {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let name = metadata::text(object, "name");
        return Err(ApiError::forbidden(cx.resource.subject(), name, &why));
    }
    Ok(())
}

fn ranges(cx: &RequestContext) -> Vec<Value> {
    let prefix = format!("core/limitranges/{}/", cx.namespace());
    let page = cx.cluster.keyspace().range(Range::prefix(&prefix));
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let ranges = entries.iter().map(|entry| entry.value.to_untyped_value());
    ranges.collect()
}
