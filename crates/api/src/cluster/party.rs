//! Who acts for one cluster of a fleet: its agent, or the holder of a bootstrap token.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::{annotation, label, registration};
use crate::admission::ObjectId;

/// Somebody who acts for one cluster of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    /// The agent of a member.
    Agent {
        /// The member.
        cluster: String,
    },
    /// The holder of a bootstrap token.
    Joiner(Terms),
}

/// Permitted use of a bootstrap token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The only cluster that it is for; any if none.
    pub cluster: Option<String>,
    /// The set that the cluster begins in; any if none.
    pub set: Option<String>,
    /// The labels that the cluster begins with; any if none.
    pub labels: Option<BTreeMap<String, String>>,
}

impl Party {
    /// The party that a user is, if it is one; `get` reads the Secret of a bootstrap token.
    pub fn of(
        user: &str,
        groups: &[String],
        get: impl FnOnce(&ObjectId<'_>) -> Option<Value>,
    ) -> Option<Self> {
        if let Some(member) = agent_of(user) {
            return Some(Self::Agent {
                cluster: member.to_owned(),
            });
        }
        let id = user.strip_prefix(registration::TOKEN_USER_PREFIX)?;
        let is_joiner = |group: &String| group == registration::BOOTSTRAP_GROUP;
        if !groups.iter().any(is_joiner) {
            return None;
        }
        let name = format!("{}{id}", registration::TOKEN_SECRET_PREFIX);
        let secret = get(&ObjectId {
            group: "",
            version: "v1",
            resource: "secrets",
            namespace: registration::TOKEN_NAMESPACE,
            name: &name,
        });
        let terms = secret.as_ref().map(Terms::read);
        Some(Self::Joiner(terms.unwrap_or_default()))
    }

    /// The only cluster that the party may speak of, if there is one.
    pub fn cluster(&self) -> Option<&str> {
        match self {
            Self::Agent { cluster } => Some(cluster),
            Self::Joiner(terms) => terms.cluster.as_deref(),
        }
    }
}

impl Terms {
    /// Reads the Secret of a token.
    fn read(secret: &Value) -> Self {
        let metadata = &secret["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
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
pub fn reserved_for(name: &str) -> Option<&str> {
    let (cluster, number) = name.rsplit_once(registration::RENEWAL_INFIX)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !cluster.is_empty()).then_some(cluster)
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
