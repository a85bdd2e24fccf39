//! Who sent a request.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Members of this group may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// Everybody whose identity is known is a member of this group.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of those whose identity is not known.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Where the credential that proved an identity is named.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A user as certificates, tokens and reviews name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// Uid of the account behind it, if there is one.
    pub uid: String,
    /// Groups, among them `system:authenticated`.
    pub groups: Vec<String>,
    /// Further facts, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user who has proved to be one.
    pub fn authenticated(
        user: impl Into<String>,
        groups: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self {
            user: user.into(),
            groups,
            ..Self::default()
        }
    }

    /// Somebody who may do everything; for our own controllers and the written kubeconfig.
    pub fn administrator(user: impl Into<String>) -> Self {
        Self::authenticated(user, [MASTERS.to_owned()])
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self {
            user: "system:anonymous".into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// The user as `SelfSubjectReview` and `TokenReview` show them.
    pub fn to_json(&self) -> Value {
        let mut info = json!({"username": self.user, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}
