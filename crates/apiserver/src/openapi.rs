//! Published schemas: OpenAPI v3 by group and version, and v2 in one piece.
//!
//! `kubectl explain`, `kubectl apply` and client-side validation read these documents. They are made
//! on demand; those of built-in groups, which never change, are kept.

mod paths;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use bellwether_schema::publish::{Definitions, OBJECT_META, OpenApi, publish, publish_resource};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::answer::{json_response, to_bytes};
use crate::discovery::hex;
use crate::endpoint::{KUBERNETES_VERSION, PathRequest};
use crate::outgoing::Body;
use crate::resource::{Resource, Source};
use crate::status::ApiError;

/// What the protobuf form of version 2 is called.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Documents of built-in groups by `apis/GROUP/VERSION`.
static BUILT_IN: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);

/// Answers `/openapi/v3`, `/openapi/v3/…` and `/openapi/v2`.
pub(crate) fn handle(request: &PathRequest<'_>) -> Result<Response<Body>, ApiError> {
    let path = request.path.trim_end_matches('/');
    if path == "/openapi/v2" {
        return version_2(request);
    }
    let resources = request.cluster.resources();
    let mut by_document: BTreeMap<String, Vec<&Arc<Resource>>> = BTreeMap::new();
    for resource in resources.iter() {
        by_document
            .entry(document_path(resource))
            .or_default()
            .push(resource);
    }
    if path == "/openapi/v3" {
        return Ok(json_response(
            StatusCode::OK,
            to_bytes(&index(request.base, &by_document)),
        ));
    }
    let wanted = path
        .strip_prefix("/openapi/v3/")
        .ok_or_else(ApiError::no_such_path)?;
    let found = by_document.get(wanted).ok_or_else(ApiError::no_such_path)?;
    let mut response = json_response(StatusCode::OK, document(wanted, found));
    if request
        .query
        .get("hash")
        .is_some_and(|hash| hash == fingerprint(found))
    {
        let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, forever);
    }
    Ok(response)
}

fn document_path(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

/// The list of documents, each with a hash that changes with its content.
fn index(base: &str, documents: &BTreeMap<String, Vec<&Arc<Resource>>>) -> Value {
    let paths: Map<String, Value> = documents
        .iter()
        .map(|(path, resources)| {
            let hash = fingerprint(resources);
            let url = format!("{base}/openapi/v3/{path}?hash={hash}");
            (path.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn fingerprint(resources: &[&Arc<Resource>]) -> String {
    let mut hash = Sha256::new_with_prefix(env!("CARGO_PKG_VERSION"));
    for resource in resources {
        hash.update(document_path(resource));
        hash.update(&*resource.plural);
        if let Source::Custom(version) = &resource.source {
            hash.update(version.fingerprint);
        }
    }
    hex(&hash.finalize()[..16])
}

fn document(path: &str, resources: &[&Arc<Resource>]) -> Bytes {
    let built_in = resources.iter().all(|resource| !resource.is_custom());
    if built_in && let Some(known) = BUILT_IN.lock().get(path) {
        return known.clone();
    }
    let mut definitions = Definitions::new();
    let mut paths = Map::new();
    for resource in resources {
        define(resource, OpenApi::V3, &mut definitions);
        paths::add(resource, &mut paths);
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION.2},
        "paths": paths,
        "components": {"schemas": definitions},
    });
    let bytes = to_bytes(&document);
    if built_in {
        BUILT_IN.lock().insert(path.to_owned(), bytes.clone());
    }
    bytes
}

/// Adds the definition of a resource and of all types that it is made of.
fn define(resource: &Resource, version: OpenApi, definitions: &mut Definitions) {
    let schema = resource.schema();
    let kind = (&*resource.group, &*resource.version, &*resource.kind);
    let (name, definition) = match &resource.source {
        Source::BuiltIn(built_in) => {
            let mut definition = publish(&schema, version, definitions);
            definition["x-kubernetes-group-version-kind"] =
                json!([{"group": kind.0, "version": kind.1, "kind": kind.2}]);
            (built_in.type_name(), definition)
        }
        Source::Custom(_) => {
            define_metadata(version, definitions);
            let definition = publish_resource(&schema, kind, version, definitions);
            (custom_name(resource), definition)
        }
    };
    definitions.insert(name, definition);
}

/// Adds the definition of `metadata`, to which every custom kind refers: that of any built-in kind.
fn define_metadata(version: OpenApi, definitions: &mut Definitions) {
    if definitions.contains_key(OBJECT_META) {
        return;
    }
    if let Some(kind) = bellwether_kinds::find_kind("", "v1", "ConfigMap") {
        publish(&kind.schema(), version, definitions);
    }
}

/// The name of a custom kind among the definitions: its group backwards, version and kind.
fn custom_name(resource: &Resource) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').collect();
    parts.reverse();
    parts.extend([&*resource.version, &*resource.kind]);
    parts.join(".")
}

/// Everything in one document, for older clients.
fn version_2(request: &PathRequest<'_>) -> Result<Response<Body>, ApiError> {
    let accept = request.accept.unwrap_or("*/*");
    if accept.contains("com.github.proto-openapi.spec.v2") {
        let mut response = json_response(StatusCode::OK, header_in_protobuf());
        let kind = HeaderValue::from_static(PROTOBUF);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        return Ok(response);
    }
    if !["*/*", "application/json", "application/*"]
        .iter()
        .any(|known| accept.contains(known))
    {
        return Err(ApiError::not_acceptable("application/json"));
    }
    let mut definitions = Definitions::new();
    let mut paths = Map::new();
    for resource in request.cluster.resources().iter() {
        define(resource, OpenApi::V2, &mut definitions);
        paths::add(resource, &mut paths);
    }
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION.2},
        "paths": paths,
        "definitions": definitions,
    });
    Ok(json_response(StatusCode::OK, to_bytes(&document)))
}

/// A document of version 2 without any schemas, in protobuf: `swagger`, `info` and empty `paths`
/// (gnostic: openapiv2/OpenAPIv2.proto). kubectl asks for this form only about kinds that it has not
/// found in version 3, and takes what is not in it for a kind that nobody serves, which is the truth.
fn header_in_protobuf() -> Bytes {
    let field = |number: u8, content: &[u8]| -> Vec<u8> {
        // All contents are short: their length is one byte.
        let length = u8::try_from(content.len()).unwrap_or(0) & 0x7f;
        let mut bytes = vec![number << 3 | 2, length];
        bytes.extend_from_slice(&content[..usize::from(length)]);
        bytes
    };
    let title = field(1, b"Kubernetes");
    let version = field(2, KUBERNETES_VERSION.2.as_bytes());
    let info = field(2, &[title, version].concat());
    [field(1, b"2.0"), info, field(8, b"")].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_document_is_readable_protobuf() {
        let bytes = header_in_protobuf();
        let info = b"\x0a\x0aKubernetes\x12\x07v1.35.0";
        let expected = [b"\x0a\x032.0\x12\x15".as_slice(), info, b"\x42\x00"].concat();
        assert_eq!(bytes, expected);
    }
}
