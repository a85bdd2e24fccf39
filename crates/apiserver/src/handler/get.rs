//! Reading one object.

use http::StatusCode;

use crate::answer::Answer;
use crate::context::RequestContext;
use crate::handler::revision::wait_for;
use crate::params::parse_revision;
use crate::status::ApiError;

/// Answers `GET` of an object.
pub(crate) async fn get(cx: &RequestContext) -> Result<Answer, ApiError> {
    if let Some(revision) = cx.query.get("resourceVersion") {
        let parsed = parse_revision(revision).map_err(|_| {
            ApiError::unexplained(format!(
                "resourceVersion: Invalid value: \"{revision}\": strconv.ParseUint: parsing \"{revision}\": invalid syntax"
            ))
        })?;
        wait_for(&cx.cluster, parsed).await?;
    }
    let entry = cx
        .cluster
        .keyspace()
        .get(&cx.key()?)
        .ok_or_else(|| not_found(cx))?;
    Ok(Answer::Stored(StatusCode::OK, entry.value))
}

/// The error for an object that is not there.
pub(crate) fn not_found(cx: &RequestContext) -> ApiError {
    ApiError::not_found(
        cx.resource.subject(),
        cx.name.as_deref().unwrap_or_default(),
    )
}
