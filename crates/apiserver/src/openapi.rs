//! Published schemas: OpenAPI v3 by group and version, and v2 in one piece.

use http::Response;

use crate::answer::Body;
use crate::endpoint::PathRequest;
use crate::status::ApiError;

/// Answers `/openapi/v3`, `/openapi/v3/…` and `/openapi/v2`.
pub(crate) fn handle(_request: &PathRequest<'_>) -> Result<Response<Body>, ApiError> {
    Err(ApiError::no_such_path())
}
