//! Bearer tokens: whom they stand for, by whatever kind of token they are.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::bootstrap_token::BootstrapToken;
use super::identity::Identity;
use super::service_account::{API_AUDIENCE, redeem};
use super::token::{Claims, TokenKey, looks_signed};
use crate::cluster::Cluster;

/// What a token proves.
#[derive(Debug)]
pub(crate) struct Proof {
    /// Who holds it.
    pub identity: Identity,
    /// Those of the asked audiences for which it is meant.
    pub audiences: Vec<String>,
}

/// The audiences of the API server itself.
pub(crate) fn api_audiences() -> Vec<String> {
    vec![API_AUDIENCE.to_owned()]
}

/// Whom a token stands for in a cluster; otherwise why it is not believed, in the words of a
/// TokenReview.
pub(crate) fn authenticate_token(
    cluster: &Cluster,
    token: &str,
    audiences: &[String],
) -> Result<Proof, String> {
    const UNKNOWN: &str = "invalid bearer token";
    if let Some(bootstrap) = BootstrapToken::parse(token) {
        let for_us: Vec<String> = audiences
            .iter()
            .filter(|audience| *audience == API_AUDIENCE)
            .cloned()
            .collect();
        let identity = bootstrap.redeem(cluster).filter(|_| !for_us.is_empty());
        return identity
            .map(|identity| Proof {
                identity,
                audiences: for_us,
            })
            .ok_or_else(|| UNKNOWN.to_owned());
    }
    if !looks_signed(token) {
        return Err(UNKNOWN.into());
    }
    let wrong = |why: &str| format!("[{UNKNOWN}, {why}]");
    let claims = cluster
        .issuers()
        .verified(token)
        .ok_or_else(|| wrong("the signature is not ours"))?;
    redeem(cluster, token, &claims, audiences).map_err(|why| wrong(&why))
}

/// Signatures that were good. Checking one costs some hundred microseconds, and clients send the
/// same token with every request; what the token says is checked again each time.
#[derive(Default)]
pub(crate) struct Verified {
    /// By the hash of the token: the token itself is not kept.
    known: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

impl std::fmt::Debug for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified").finish_non_exhaustive()
    }
}

impl Verified {
    /// More than a fleet has controllers; beyond that it is started over.
    const LIMIT: usize = 4_096;

    /// What a token says, if `key` signed it.
    pub(crate) fn claims(&self, key: &TokenKey, token: &str) -> Option<Arc<Claims>> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        if let Some(found) = self.known.lock().get(&hash) {
            return Some(found.clone());
        }
        let claims = Arc::new(key.verify(token)?);
        let mut known = self.known.lock();
        if known.len() >= Self::LIMIT {
            known.clear();
        }
        known.insert(hash, claims.clone());
        Some(claims)
    }
}

/// Whether two secrets are equal, in a time that does not tell where they differ.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0_u8, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_only_if_they_are() {
        for (one, other, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "b", false),
            ("a", "ab", false),
            ("ab", "a", false),
        ] {
            assert_eq!(same(one.as_bytes(), other.as_bytes()), expected);
        }
    }

    #[test]
    fn a_verified_token_is_remembered_and_a_wrong_one_is_not() {
        let key = TokenKey::generate().unwrap();
        let verified = Verified::default();
        let token = key.sign(&Claims::default()).unwrap();
        assert!(verified.claims(&key, &token).is_some());
        assert!(verified.claims(&key, "a.b.c").is_none());
        assert_eq!(verified.known.lock().len(), 1);
    }
}
