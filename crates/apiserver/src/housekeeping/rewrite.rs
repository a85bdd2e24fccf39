//! Changing objects on behalf of the controllers in here.

use serde_json::{Value, json};

use crate::context::RequestContext;
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::resource::Part;
use crate::status::ApiError;

/// Changes the object of the context, anyone who else writes to it. `edit` is called again after a
/// lost race.
pub(crate) async fn rewrite(
    cx: &RequestContext,
    mut edit: impl FnMut(&mut Value),
) -> Result<(), ApiError> {
    let manager = cx.manager("");
    change(cx, Part::Whole, &WriteOptions::default(), |live| {
        let mut object = live.clone();
        edit(&mut object);
        Ok(Proposal {
            object,
            ownership: Ownership::Update(manager.clone()),
        })
    })
    .await
    .map(drop)
}

/// Lets go of an object.
pub(super) async fn remove_finalizer(cx: &RequestContext, finalizer: &str) -> Result<(), ApiError> {
    rewrite(cx, |object| {
        keep(object, "finalizers", |name| name != finalizer);
    })
    .await
}

/// Keeps those entries of a list in `metadata` that pass; an empty list is left out.
pub(super) fn keep(object: &mut Value, list: &str, mut passes: impl FnMut(&Value) -> bool) {
    let entries = object["metadata"][list].as_array().into_iter().flatten();
    let kept: Vec<Value> = entries.filter(|entry| passes(entry)).cloned().collect();
    if kept.is_empty() {
        metadata::of(object).remove(list);
    } else {
        object["metadata"][list] = json!(kept);
    }
}
