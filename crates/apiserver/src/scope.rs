//! What the agents of a fleet, and those who ask to join it, see of kinds that they share with others.
//!
//! Agents written for Open Cluster Management list and watch certificate requests, and count those of
//! their cluster; roles cannot say "only one's own". So everybody else's are left out here: a member
//! sees the requests that it made, and a bootstrap token for one cluster sees that cluster. A request
//! that somebody else makes in a member's name neither shows up nor counts.

use std::collections::BTreeMap;

use bellwether_api::Kind as _;
use bellwether_api::cluster::names::{annotation, label, registration};
use bellwether_api::cluster::{GROUP, ManagedCluster};

use crate::access::{BOOTSTRAP_PREFIX, Identity};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::request::Verb;
use crate::status::ApiError;

/// Somebody who acts for one cluster of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    /// The agent of a member.
    Agent {
        /// The member.
        cluster: String,
    },
    /// The holder of a bootstrap token.
    Joiner(Terms),
}

/// What a bootstrap token may be used for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The only cluster that it is for; any if none.
    pub(crate) cluster: Option<String>,
    /// The set that the cluster begins in; any if none.
    pub(crate) set: Option<String>,
    /// The labels that the cluster begins with; any if none.
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

impl Party {
    /// The party that an identity is, if it is one.
    pub(crate) fn of(cluster: &Cluster, identity: &Identity) -> Option<Self> {
        if let Some(member) = agent_of(&identity.user) {
            return Some(Self::Agent {
                cluster: member.to_owned(),
            });
        }
        let id = identity
            .user
            .strip_prefix(registration::TOKEN_USER_PREFIX)?;
        let is_joiner = |group: &String| group == registration::BOOTSTRAP_GROUP;
        if !identity.groups.iter().any(is_joiner) {
            return None;
        }
        let secret = cluster.keyspace().get(&format!("{BOOTSTRAP_PREFIX}{id}"));
        let terms = secret.map(|entry| Terms::read(&entry.value.to_untyped_value()));
        Some(Self::Joiner(terms.unwrap_or_default()))
    }

    /// The only cluster that the party may speak of, if there is one.
    pub(crate) fn cluster(&self) -> Option<&str> {
        match self {
            Self::Agent { cluster } => Some(cluster),
            Self::Joiner(terms) => terms.cluster.as_deref(),
        }
    }
}

impl Terms {
    /// Reads the Secret of a token.
    fn read(secret: &serde_json::Value) -> Self {
        let metadata = &secret["metadata"];
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let labels = metadata["annotations"][annotation::TOKEN_LABELS].as_str();
        Self {
            cluster: text(&metadata["labels"][label::CLUSTER_NAME]),
            set: text(&metadata["annotations"][annotation::TOKEN_CLUSTER_SET]),
            // Labels that cannot be read allow none.
            labels: labels.map(|labels| serde_json::from_str(labels).unwrap_or_default()),
        }
    }
}

/// The member whose agent a user is.
fn agent_of(user: &str) -> Option<&str> {
    let mut parts = user.strip_prefix(registration::USER_PREFIX)?.split(':');
    let (cluster, agent) = (parts.next()?, parts.next()?);
    let is_agent = parts.next().is_none() && !cluster.is_empty() && !agent.is_empty();
    is_agent.then_some(cluster)
}

/// The cluster whose agents alone may use a name for a certificate request.
pub(crate) fn reserved_for(name: &str) -> Option<&str> {
    let (cluster, number) = name.rsplit_once(registration::RENEWAL_INFIX)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !cluster.is_empty()).then_some(cluster)
}

/// Leaves out of an answer what the sender is not to see.
pub(crate) fn narrow(cx: &mut RequestContext) -> Result<(), ApiError> {
    let Some((field, value)) = visible(cx) else {
        return Ok(());
    };
    match cx.verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            cx.query.select(field, &value);
            Ok(())
        }
        Verb::Get => {
            let is_visible = match field {
                NAME => cx.name.as_deref() == Some(&*value),
                _ => requester(cx)? == Some(value),
            };
            // As if it were not there: that somebody has asked is nobody else's business.
            let name = cx.name.as_deref().unwrap_or_default();
            is_visible
                .then_some(())
                .ok_or_else(|| ApiError::not_found(cx.resource.subject(), name))
        }
        _ => Ok(()),
    }
}

const NAME: &str = "metadata.name";
const REQUESTER: &str = "spec.username";

/// The field and its value that objects have which the sender sees; everything if none.
fn visible(cx: &RequestContext) -> Option<(&'static str, String)> {
    match (&*cx.resource.group, &*cx.resource.plural) {
        ("certificates.k8s.io", "certificatesigningrequests") => {
            Party::of(&cx.cluster, &cx.identity)?;
            Some((REQUESTER, cx.identity.user.clone()))
        }
        (GROUP, plural) if plural == ManagedCluster::NAMES.plural => {
            match Party::of(&cx.cluster, &cx.identity)? {
                Party::Joiner(terms) => terms.cluster.map(|cluster| (NAME, cluster)),
                // Roles name the one cluster of an agent.
                Party::Agent { .. } => None,
            }
        }
        _ => None,
    }
}

/// Who made the certificate request in the path.
fn requester(cx: &RequestContext) -> Result<Option<String>, ApiError> {
    let entry = cx.cluster.keyspace().get(&cx.key()?);
    let object = entry.map(|entry| entry.value.to_untyped_value());
    let user = object.and_then(|object| object["spec"]["username"].as_str().map(str::to_owned));
    Ok(user)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_known_by_its_user() {
        for (user, expected) in [
            ("system:open-cluster-management:c1:a", Some("c1")),
            ("system:open-cluster-management:c1:", None),
            ("system:open-cluster-management::a", None),
            ("system:open-cluster-management:c1", None),
            ("system:open-cluster-management:addon:x:c1:a", None),
            ("c1:a", None),
        ] {
            assert_eq!(agent_of(user), expected, "{user}");
        }
    }

    #[test]
    fn names_for_renewals_belong_to_one_cluster() {
        for (name, expected) in [
            ("c1-renewal-0", Some("c1")),
            ("c1-renewal-x-renewal-12", Some("c1-renewal-x")),
            ("c1-renewal-", None),
            ("c1-renewal-x", None),
            ("-renewal-1", None),
            ("c1-k5x2p", None),
        ] {
            assert_eq!(reserved_for(name), expected, "{name}");
        }
    }

    #[test]
    fn a_token_says_what_it_is_for() {
        let secret = json!({"metadata": {
            "labels": {"open-cluster-management.io/cluster-name": "c1"},
            "annotations": {
                "cluster.bellwether.dev/token-cluster-set": "prod",
                "cluster.bellwether.dev/token-labels": "{\"region\":\"emea\"}",
            },
        }});
        let labels = [("region".to_owned(), "emea".to_owned())];
        let expected = Terms {
            cluster: Some("c1".into()),
            set: Some("prod".into()),
            labels: Some(labels.into()),
        };
        assert_eq!(Terms::read(&secret), expected);
        assert_eq!(Terms::read(&json!({})), Terms::default());
        let broken = json!({"metadata": {"annotations": {
            "cluster.bellwether.dev/token-labels": "region=emea",
        }}});
        let none = Terms {
            labels: Some(BTreeMap::new()),
            ..Terms::default()
        };
        assert_eq!(Terms::read(&broken), none);
    }
}
