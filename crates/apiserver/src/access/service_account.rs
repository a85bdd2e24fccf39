//! Service accounts: how they are named, and whether a token of one still holds.

use bellwether_store::Entry;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::bearer::Proof;
use super::identity::{CREDENTIAL_ID, Identity};
use super::rule::quoted;
use super::token::{Claims, Holder, Reference};
use crate::cluster::Cluster;
use crate::object::StoredObject;

/// What the API server itself calls itself in tokens.
pub(crate) const API_AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// Clocks differ by a little, as Kubernetes allows them to.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// The issuer of the tokens of a cluster. It names the cluster, so that a token proves nothing in
/// another one although all are signed with the same key.
pub(crate) fn issuer(cluster: &str) -> String {
    format!("{API_AUDIENCE}/clusters/{cluster}")
}

/// The cluster that issued a token, whether it still exists or not.
pub(crate) fn issuing_cluster(claims: &Claims) -> Option<&str> {
    let rest = claims.issuer.strip_prefix(API_AUDIENCE)?;
    rest.strip_prefix("/clusters/")
}

/// The user name of an account.
pub(crate) fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of all accounts of a namespace.
pub(crate) fn groups(namespace: &str) -> [String; 2] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Whom a token with a good signature stands for at this moment; otherwise why it does not.
pub(crate) fn redeem(
    cluster: &Cluster,
    token: &str,
    claims: &Claims,
    audiences: &[String],
) -> Result<Proof, String> {
    if claims.issuer != issuer(cluster.name()) {
        return Err("service account token was issued for another cluster".into());
    }
    let common: Vec<String> = audiences
        .iter()
        .filter(|audience| claims.audiences.contains(audience))
        .cloned()
        .collect();
    if common.is_empty() {
        return Err(format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&claims.audiences),
            quoted(audiences)
        ));
    }
    let now = cluster.clock().now();
    check_times(claims, now)?;
    let holder = &claims.holder;
    let found = Lookup { cluster, now };
    found.account(holder)?;
    found.bound_objects(token, claims)?;
    Ok(Proof {
        identity: identity(claims),
        audiences: common,
    })
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), String> {
    let now = now.as_second();
    let leeway = LEEWAY.as_secs();
    if claims
        .expires
        .is_some_and(|at| now > at.saturating_add(leeway))
    {
        return Err("service account token has expired".into());
    }
    if now < claims.not_before.saturating_sub(leeway) {
        return Err("service account token is not valid yet".into());
    }
    Ok(())
}

struct Lookup<'a> {
    cluster: &'a Cluster,
    now: Timestamp,
}

impl Lookup<'_> {
    fn account(&self, holder: &Holder) -> Result<(), String> {
        let Holder {
            namespace,
            account: Reference { name, uid },
            ..
        } = holder;
        let key = format!("core/serviceaccounts/{namespace}/{name}");
        let Some(found) = self.cluster.keyspace().get(&key) else {
            return Err(format!("serviceaccounts \"{name}\" not found"));
        };
        if found.value.uid() != &**uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({uid})",
                found.value.uid()
            ));
        }
        if self.is_deleted(&found) {
            return Err(format!(
                "service account {namespace}/{name} has been deleted"
            ));
        }
        Ok(())
    }

    /// A token ends with what it is bound to.
    fn bound_objects(&self, token: &str, claims: &Claims) -> Result<(), String> {
        let holder = &claims.holder;
        let namespace = &holder.namespace;
        if let Some(secret) = &holder.secret {
            let found = self.bound("secret", &format!("core/secrets/{namespace}/"), secret)?;
            // The token in a Secret is good for as long as it is in there.
            if claims.expires.is_none() && !holds(&found.value.to_untyped_value(), token) {
                return Err("service account token has been invalidated".into());
            }
        }
        if let Some(pod) = &holder.pod {
            self.bound("pod", &format!("core/pods/{namespace}/"), pod)?;
        } else if let Some(node) = &holder.node {
            self.bound("node", "core/nodes/", node)?;
        }
        Ok(())
    }

    fn bound(
        &self,
        what: &str,
        prefix: &str,
        wanted: &Reference,
    ) -> Result<Entry<StoredObject>, String> {
        let found = self
            .cluster
            .keyspace()
            .get(&format!("{prefix}{}", wanted.name))
            .filter(|found| !self.is_deleted(found))
            .ok_or("service account token has been invalidated")?;
        if found.value.uid() != &*wanted.uid {
            return Err(format!(
                "{what} UID ({}) does not match service account {what} ref claim ({})",
                found.value.uid(),
                wanted.uid
            ));
        }
        Ok(found)
    }

    /// An object that waits for its finalizers counts for a little while.
    fn is_deleted(&self, found: &Entry<StoredObject>) -> bool {
        if !found.value.is_deleting() {
            return false;
        }
        let object = found.value.to_untyped_value();
        let at = object["metadata"]["deletionTimestamp"]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok());
        at.is_none_or(|at| at.saturating_add(LEEWAY).is_ok_and(|end| end < self.now))
    }
}

fn holds(secret: &Value, token: &str) -> bool {
    use base64::Engine as _;
    let stored = secret["data"]["token"].as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD
        .decode(stored)
        .is_ok_and(|stored| super::bearer::same(&stored, token.as_bytes()))
}

fn identity(claims: &Claims) -> Identity {
    let holder = &claims.holder;
    let namespace = &holder.namespace;
    let user = user_name(namespace, &holder.account.name);
    let mut identity = Identity::authenticated(user, groups(namespace));
    identity.uid.clone_from(&holder.account.uid);
    if !claims.id.is_empty() {
        let id = format!("JTI={}", claims.id);
        identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    }
    let mut note = |key: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            identity.extra.insert(key, vec![value.to_owned()]);
        }
    };
    if let Some(pod) = &holder.pod {
        note("pod-name", &pod.name);
        note("pod-uid", &pod.uid);
    }
    if let Some(node) = &holder.node {
        note("node-name", &node.name);
        note("node-uid", &node.uid);
    }
    identity
}
