//! Paths that are not resources: health, version, metrics, discovery, schemas.

use bellwether_runtime::METRICS_CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::json;

use crate::answer::{json_response, to_bytes};
use crate::cluster::Cluster;
use crate::metrics::Metrics;
use crate::outgoing::Body;
use crate::params::Query;
use crate::server::{plain_text, plain_text_with};
use crate::status::ApiError;
use crate::{discovery, openapi};

/// A request for a plain path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathRequest<'a> {
    pub(crate) cluster: &'a Cluster,
    /// What stands before `path` in the client's eyes: empty, or `/clusters/NAME`.
    pub(crate) base: &'a str,
    pub(crate) path: &'a str,
    pub(crate) accept: Option<&'a str>,
    pub(crate) query: &'a Query,
}

/// The release of Kubernetes whose behaviour we show; clients choose features by it.
pub(crate) const KUBERNETES_VERSION: (&str, &str, &str) = ("1", "35", "v1.35.0");

/// Whether a path tells no more than how the server is.
pub(crate) fn is_health(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    matches!(first, Some("healthz" | "livez" | "readyz" | "version"))
}

/// Answers a plain path.
pub(crate) fn handle(
    request: &PathRequest<'_>,
    metrics: &Metrics,
) -> Result<Response<Body>, ApiError> {
    let path = request.path.trim_end_matches('/');
    if let Some((check, part)) = health_part(path) {
        return Ok(partial_health(request.cluster, check, part));
    }
    match path {
        "/healthz" | "/livez" | "/readyz" => {
            let verbose = request.query.flag("verbose")?.unwrap_or(false);
            Ok(health(request.cluster, path, verbose))
        }
        "/version" => Ok(version()),
        "/metrics" => Ok(plain_text(METRICS_CONTENT_TYPE, metrics.render())),
        "" => Ok(root(request.cluster)),
        "/openid/v1/jwks" => Ok(token_keys(request.cluster)),
        "/.well-known/openid-configuration" => Ok(issuer_configuration(request.cluster)),
        _ if path.starts_with("/openapi") => openapi::handle(request),
        _ => discovery::handle(request),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// A path such as `/readyz/store`, in two.
fn health_part(path: &str) -> Option<(&str, &str)> {
    let (check, part) = path.rsplit_once('/')?;
    let is_check = matches!(check, "/healthz" | "/livez" | "/readyz");
    (is_check && matches!(part, "ping" | "store" | "etcd")).then_some((check, part))
}

/// Why a check of the store fails. A full disk is no reason to restart the server, so that it is
/// alive, but not ready.
fn storage_problem(cluster: &Cluster, check: &str) -> Option<String> {
    let failure = cluster.keyspace().failure().filter(|_| check != "/livez");
    failure.map(|cause| cause.to_string())
}

fn health(cluster: &Cluster, check: &str, verbose: bool) -> Response<Body> {
    let name = check.trim_start_matches('/');
    match storage_problem(cluster, check) {
        Some(cause) => plain_text_with(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("[+]ping ok\n[-]store failed: {cause}\n{name} check failed\n"),
        ),
        None if verbose => plain_text(
            TEXT,
            format!("[+]ping ok\n[+]store ok\n{name} check passed\n"),
        ),
        None => plain_text(TEXT, "ok".into()),
    }
}

fn partial_health(cluster: &Cluster, check: &str, part: &str) -> Response<Body> {
    let problem = storage_problem(cluster, check).filter(|_| part != "ping");
    match problem {
        Some(cause) => plain_text_with(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("internal server error: {cause}\n"),
        ),
        None => plain_text(TEXT, "ok".into()),
    }
}

/// The version that `/version` reports: of the Kubernetes API, and of this server.
pub fn kubernetes_version() -> String {
    let (_, _, git_version) = KUBERNETES_VERSION;
    format!("{git_version}+bellwether.{}", env!("CARGO_PKG_VERSION"))
}

fn version() -> Response<Body> {
    let (major, minor, _) = KUBERNETES_VERSION;
    let version = json!({
        "major": major, "minor": minor,
        "gitVersion": kubernetes_version(),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    json_response(StatusCode::OK, to_bytes(&version))
}

/// The keys with which others can check tokens of this cluster.
fn token_keys(cluster: &Cluster) -> Response<Body> {
    let key = cluster.issuers().token_key.as_ref();
    let keys: Vec<_> = key.map(|key| key.public_key()).into_iter().collect();
    json_response(StatusCode::OK, to_bytes(&json!({"keys": keys})))
}

fn issuer_configuration(cluster: &Cluster) -> Response<Body> {
    let issuer = crate::access::issuer(cluster.name());
    let configuration = json!({
        "issuer": issuer, "jwks_uri": format!("{issuer}/openid/v1/jwks"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    json_response(StatusCode::OK, to_bytes(&configuration))
}

fn root(cluster: &Cluster) -> Response<Body> {
    let mut paths: Vec<String> = vec!["/api".into(), "/api/v1".into(), "/apis".into()];
    for (group, versions) in cluster.resources().groups() {
        if group.is_empty() {
            continue;
        }
        paths.push(format!("/apis/{group}"));
        paths.extend(
            versions
                .iter()
                .map(|version| format!("/apis/{group}/{version}")),
        );
    }
    let others = [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    json_response(StatusCode::OK, to_bytes(&json!({"paths": paths})))
}
