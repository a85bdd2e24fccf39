//! Secrets that are credentials: tokens of service accounts are filled in and go with their account,
//! bootstrap tokens go when they have expired.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_store::{Entry, Range};
use jiff::Timestamp;
use serde_json::Value;

use crate::access::{BOOTSTRAP_PREFIX, BootstrapSecret, Reference};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::delete::delete_object;
use crate::handler::token_request::claims;
use crate::housekeeping::rewrite::rewrite;
use crate::object::StoredObject;
use crate::params::DeleteOptions;
use crate::status::ApiError;

const CONTROLLER: &str = "tokens-controller";
const ACCOUNTS: &str = "core/serviceaccounts/";
/// Where Secrets are.
pub(super) const SECRETS: &str = "core/secrets/";
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Whether a change of this object is of interest here.
pub(super) fn is_relevant(key: &str, object: &StoredObject) -> bool {
    key.starts_with(SECRETS) && object.mentions(TYPE)
}

/// The Secrets to look at after an account is gone.
pub(super) fn of_account(cluster: &Cluster, key: &str) -> Vec<Arc<str>> {
    let Some((namespace, _)) = key
        .strip_prefix(ACCOUNTS)
        .and_then(|rest| rest.split_once('/'))
    else {
        return Vec::new();
    };
    let prefix = format!("{SECRETS}{namespace}/");
    let Ok(page) = cluster.keyspace().range(Range::prefix(&prefix)) else {
        return Vec::new();
    };
    let secrets = page.entries.into_iter();
    secrets
        .filter(|entry| is_relevant(&entry.key, &entry.value))
        .map(|entry| entry.key)
        .collect()
}

/// When a bootstrap token expires.
pub(super) fn deadline(key: &str, object: &StoredObject) -> Option<Timestamp> {
    if !key.starts_with(BOOTSTRAP_PREFIX) {
        return None;
    }
    let secret = BootstrapSecret(object.to_untyped_value());
    secret.expires().filter(|_| secret.is_bootstrap_token())
}

/// Does what has to be done about a Secret.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster
        .keyspace()
        .get(key)
        .filter(|entry| !entry.value.is_deleting())
    else {
        return;
    };
    let expired = deadline(key, &entry.value).is_some_and(|at| at <= cluster.clock().now());
    let result = if expired {
        remove(cluster, &entry).await
    } else if is_relevant(key, &entry.value) {
        sync(cluster, &entry).await
    } else {
        return;
    };
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), key, %error, "cannot look after a token");
    }
}

fn context(cluster: &Arc<Cluster>, key: &str) -> Option<RequestContext> {
    let resources = cluster.resources();
    let resource = resources.find("", "v1", "secrets")?;
    Some(RequestContext::internal(cluster, resource, key, CONTROLLER))
}

/// Removes this Secret, and no later namesake.
async fn remove(cluster: &Arc<Cluster>, entry: &Entry<StoredObject>) -> Result<(), ApiError> {
    let Some(cx) = context(cluster, &entry.key) else {
        return Ok(());
    };
    let options = DeleteOptions {
        uid: Some(entry.value.uid().to_owned()),
        ..DeleteOptions::default()
    };
    delete_object(&cx, &options).await.map(drop)
}

/// Fills in token, namespace and authority; a Secret without its account goes.
async fn sync(cluster: &Arc<Cluster>, entry: &Entry<StoredObject>) -> Result<(), ApiError> {
    let secret = entry.value.to_untyped_value();
    if secret["type"] != TYPE {
        return Ok(());
    }
    let Some(cx) = context(cluster, &entry.key) else {
        return Ok(());
    };
    let namespace = cx.namespace();
    let note = |key: &str| secret["metadata"]["annotations"][key].as_str();
    let name = note(ACCOUNT_NAME).unwrap_or_default();
    let account = cluster
        .keyspace()
        .get(&format!("{ACCOUNTS}{namespace}/{name}"));
    let Some(account) = account else {
        return remove(cluster, entry).await;
    };
    let uid = account.value.uid();
    if note(ACCOUNT_UID).is_some_and(|noted| noted != uid) {
        return remove(cluster, entry).await;
    }
    let Some(key) = cluster.issuers().token_key.as_ref() else {
        return Ok(());
    };
    let mut wanted = Vec::new();
    if secret["data"]["token"].as_str().is_none_or(str::is_empty) {
        let mut claims = claims(cluster.name(), namespace, name, uid, cx.now);
        claims.holder.secret = Some(Reference {
            name: cx.name()?.to_owned(),
            uid: entry.value.uid().to_owned(),
        });
        let token = key
            .sign(&claims)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        wanted.push(("token", BASE64.encode(token)));
    }
    wanted.push(("namespace", BASE64.encode(namespace)));
    if let Some(authority) = &cluster.issuers().authority {
        wanted.push((
            "ca.crt",
            BASE64.encode(&authority.credentials().certificate),
        ));
    }
    let complete = wanted
        .iter()
        .all(|(key, value)| secret["data"][key] == value.as_str());
    if complete && note(ACCOUNT_UID).is_some() {
        return Ok(());
    }
    rewrite(&cx, |secret| fill(secret, uid, &wanted)).await
}

fn fill(secret: &mut Value, uid: &str, wanted: &[(&str, String)]) {
    secret["metadata"]["annotations"][ACCOUNT_UID] = uid.into();
    for (key, value) in wanted {
        // A token that came in between stays.
        if *key != "token" || secret["data"]["token"].as_str().is_none_or(str::is_empty) {
            secret["data"][*key] = value.as_str().into();
        }
    }
}
