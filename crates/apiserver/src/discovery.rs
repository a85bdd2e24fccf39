//! Discovery: which groups, versions and resources there are, in the plain and the aggregated form.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::answer::{json_response, to_bytes};
use crate::endpoint::PathRequest;
use crate::outgoing::Body;
use crate::request::Verb;
use crate::resource::{Resource, Source};
use crate::resources::Resources;
use crate::status::ApiError;

/// Answers `/api`, `/apis`, `/apis/GROUP` and `/apis/GROUP/VERSION`.
pub(crate) fn handle(request: &PathRequest<'_>) -> Result<Response<Body>, ApiError> {
    let resources = request.cluster.resources();
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let aggregated = request
        .accept
        .is_some_and(|accept| accept.contains("g=apidiscovery.k8s.io"));
    let document = match parts.as_slice() {
        ["api"] if aggregated => return Ok(respond_aggregated(request, &resources, true)),
        ["apis"] if aggregated => return Ok(respond_aggregated(request, &resources, false)),
        ["api"] => json!({
            "kind": "APIVersions", "apiVersion": "v1", "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        ["apis"] => json!({
            "kind": "APIGroupList", "apiVersion": "v1",
            "groups": resources
                .groups()
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| group_document(group, versions))
                .collect::<Vec<_>>(),
        }),
        ["apis", group] => {
            let groups = resources.groups();
            let found = groups
                .iter()
                .find(|(name, _)| !name.is_empty() && **name == **group);
            let (group, versions) = found.ok_or_else(ApiError::no_such_path)?;
            let mut document = group_document(group, versions);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            document
        }
        ["api", version] => resource_list(&resources, "", version)?,
        ["apis", group, version] => resource_list(&resources, group, version)?,
        _ => return Err(ApiError::no_such_path()),
    };
    Ok(json_response(StatusCode::OK, to_bytes(&document)))
}

fn group_document(group: &str, versions: &[std::sync::Arc<str>]) -> Value {
    let entry =
        |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({
        "name": group,
        "versions": versions.iter().map(|version| entry(version)).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(|version| entry(version)),
    })
}

fn resource_list(resources: &Resources, group: &str, version: &str) -> Result<Value, ApiError> {
    let found: Vec<&Resource> = resources
        .iter()
        .filter(|resource| *resource.group == *group && *resource.version == *version)
        .map(AsRef::as_ref)
        .collect();
    let first = found.first().ok_or_else(ApiError::no_such_path)?;
    let entries: Vec<Value> = found
        .iter()
        .flat_map(|resource| list_entries(resource))
        .collect();
    let mut list = json!({
        "kind": "APIResourceList", "groupVersion": *first.api_version, "resources": entries,
    });
    // The core and built-in groups leave it out in Kubernetes; nobody minds its presence.
    list["apiVersion"] = "v1".into();
    Ok(list)
}

fn words(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

/// An entry for the resource and one for each of its subresources.
fn list_entries(resource: &Resource) -> Vec<Value> {
    let mut entry = Map::new();
    entry.insert("name".into(), (*resource.plural).into());
    entry.insert("singularName".into(), (*resource.singular).into());
    entry.insert("namespaced".into(), resource.namespaced.into());
    entry.insert("kind".into(), (*resource.kind).into());
    entry.insert("verbs".into(), json!(words(&resource.verbs)));
    if !resource.short_names.is_empty() {
        entry.insert("shortNames".into(), json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        entry.insert("categories".into(), json!(resource.categories));
    }
    if !resource.is_virtual() {
        entry.insert(
            "storageVersionHash".into(),
            storage_version_hash(resource).into(),
        );
    }
    let mut entries = vec![Value::Object(entry)];
    entries.extend(subresources(resource).into_iter().map(|sub| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name),
            "singularName": "", "namespaced": resource.namespaced,
            "kind": sub.kind, "verbs": sub.verbs,
        });
        if let Some((group, version)) = sub.group_version {
            entry["group"] = group.into();
            entry["version"] = version.into();
        }
        entry
    }));
    entries
}

struct Subresource {
    name: String,
    kind: String,
    /// Set where it differs from the resource's.
    group_version: Option<(String, String)>,
    verbs: Vec<String>,
}

fn subresources(resource: &Resource) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    match &resource.source {
        Source::BuiltIn(kind) => kind
            .subresources
            .iter()
            .map(|sub| Subresource {
                name: sub.name.into(),
                kind: sub.kind.map_or(kind.kind, |(_, _, kind)| kind).into(),
                group_version: sub
                    .kind
                    .filter(|(group, version, _)| (*group, *version) != (kind.group, kind.version))
                    .map(|(group, version, _)| (group.into(), version.into())),
                verbs: sub.verbs.iter().map(ToString::to_string).collect(),
            })
            .collect(),
        Source::Custom(version) => {
            let mut found = Vec::new();
            if version.has_status {
                found.push(Subresource {
                    name: "status".into(),
                    kind: resource.kind.to_string(),
                    group_version: None,
                    verbs: verbs(),
                });
            }
            if version.scale.is_some() {
                found.push(Subresource {
                    name: "scale".into(),
                    kind: "Scale".into(),
                    group_version: Some(("autoscaling".into(), "v1".into())),
                    verbs: verbs(),
                });
            }
            found
        }
    }
}

/// A short hash of where and how objects are stored, as Kubernetes computes it.
fn storage_version_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let (group, version) = match &resource.source {
        Source::BuiltIn(kind) => (kind.storage.group, kind.storage.version),
        Source::Custom(_) => (&*resource.group, &*resource.version),
    };
    let digest = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

/// The whole of discovery in one document, with an entity tag so that clients need not read it twice.
fn respond_aggregated(
    request: &PathRequest<'_>,
    resources: &Resources,
    core: bool,
) -> Response<Body> {
    let accept = request.accept.unwrap_or_default();
    let version =
        if accept.contains("v=v2;") || accept.contains("v=v2,") || accept.ends_with("v=v2") {
            "v2"
        } else {
            "v2beta1"
        };
    let groups: Vec<Value> = resources
        .groups()
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| aggregated_group(resources, group, versions))
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": groups,
    });
    let bytes = to_bytes(&document);
    let tag = format!("\"{}\"", hex(&Sha256::digest(&bytes)[..16]));
    let mut response = json_response(StatusCode::OK, bytes);
    let headers = response.headers_mut();
    let content_type =
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    if let Ok(value) = HeaderValue::from_str(&content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    if let Ok(value) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, value);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02X}");
        out
    })
}

fn aggregated_group(resources: &Resources, group: &str, versions: &[std::sync::Arc<str>]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let found: Vec<Value> = resources
                .iter()
                .filter(|resource| *resource.group == *group && resource.version == *version)
                .map(|resource| aggregated_resource(resource))
                .collect();
            json!({"version": **version, "freshness": "Current", "resources": found})
        })
        .collect();
    let mut metadata = json!({"creationTimestamp": null});
    if !group.is_empty() {
        metadata["name"] = group.into();
    }
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut entry = json!({
        "resource": *resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": *resource.singular,
        "verbs": words(&resource.verbs),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let found: Vec<Value> = subresources(resource)
        .iter()
        .map(|sub| {
            let (group, version) = match &sub.group_version {
                Some((group, version)) => (group.as_str(), version.as_str()),
                None => (&*resource.group, &*resource.version),
            };
            json!({
                "subresource": sub.name, "responseKind": kind(group, version, &sub.kind),
                "verbs": sub.verbs,
            })
        })
        .collect();
    if !found.is_empty() {
        entry["subresources"] = json!(found);
    }
    entry
}
