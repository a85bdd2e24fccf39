//! The service account of pods, as the admission plugin `ServiceAccount` gives it to them.

use std::time::Duration;

use bellwether_kinds::{DEFAULT_ACCOUNT, TOKEN_VOLUME, account_name, set_account};
use serde_json::Value;

use crate::context::RequestContext;
use crate::metadata;
use crate::status::ApiError;

/// How long a pod waits for the default account of a namespace that has just been created.
const ACCOUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes a pod run as its account, with the account's token. Clusters without a controller that
/// creates default accounts leave pods as they are.
pub(super) async fn assign(cx: &RequestContext, pod: &mut Value) -> Result<(), ApiError> {
    if !cx.cluster.keeps_accounts() {
        return Ok(());
    }
    let Some(name) = account_name(pod).map(str::to_owned) else {
        return Ok(());
    };
    let Some(account) = find(cx, &name).await else {
        let namespace = cx.namespace();
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        let pod = metadata::text(pod, "name");
        return Err(ApiError::forbidden(cx.resource.subject(), pod, &why));
    };
    set_account(pod, &account, &metadata::generate_name(TOKEN_VOLUME));
    Ok(())
}

async fn find(cx: &RequestContext, name: &str) -> Option<Value> {
    let key = format!("core/serviceaccounts/{}/{name}", cx.namespace());
    let keyspace = cx.cluster.keyspace();
    let revision = keyspace.revision();
    let read = || Some(keyspace.get(&key)?.value.to_untyped_value());
    if let Some(account) = read() {
        return Some(account);
    }
    if name != DEFAULT_ACCOUNT {
        return None;
    }
    let mut changes = keyspace.watch(&key, revision).ok()?;
    let arrival = async {
        while changes.next().await.is_some() {
            if let Some(account) = read() {
                return Some(account);
            }
        }
        None
    };
    tokio::time::timeout(ACCOUNT_TIMEOUT, arrival)
        .await
        .ok()
        .flatten()
}
