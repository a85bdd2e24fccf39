//! What proves identities: the authority for certificates and the key for tokens, shared by all
//! clusters of a server.

use std::sync::Arc;

use super::bearer::Verified;
use super::token::{Claims, TokenKey};
use crate::pki::Authority;

/// The authority and the key of a server.
#[derive(Debug, Default)]
pub(crate) struct Issuers {
    /// Signs client certificates; without it approved requests stay unsigned.
    pub authority: Option<Arc<Authority>>,
    /// Signs tokens; without it there are none.
    pub token_key: Option<Arc<TokenKey>>,
    verified: Verified,
}

impl Issuers {
    pub(crate) fn new(authority: Option<Arc<Authority>>, token_key: Option<Arc<TokenKey>>) -> Self {
        Self {
            authority,
            token_key,
            verified: Verified::default(),
        }
    }

    /// What a token says, if we signed it.
    pub(crate) fn verified(&self, token: &str) -> Option<Arc<Claims>> {
        self.verified.claims(self.token_key.as_deref()?, token)
    }
}
