//! Bootstrap tokens: what a new member shows when it knocks for the first time.
//!
//! A token is `ID.SECRET`; the Secret `kube-system/bootstrap-token-ID` says that it is good, as in
//! Kubernetes. Tokens that are made here are kept as a hash only; those that people write
//! themselves hold `token-secret` in clear, and work as well.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_json::time;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::bearer::same;
use super::identity::Identity;
use crate::cluster::Cluster;
use crate::pki::PkiError;

/// The type of the Secrets.
pub(crate) const TYPE: &str = "bootstrap.kubernetes.io/token";
/// Where the Secrets are; the id follows.
pub(crate) const PREFIX: &str = "core/secrets/kube-system/bootstrap-token-";
const GROUP: &str = "system:bootstrappers";
/// The entry with the hash of the secret part, where there is no `token-secret`.
const HASH: &str = "token-secret-sha256";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// A token for those who have no identity yet.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    id: String,
    secret: String,
}

impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BootstrapToken({}.…)", self.id)
    }
}

impl BootstrapToken {
    /// A new token.
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self {
            id: random_text(ID_LENGTH)?,
            secret: random_text(SECRET_LENGTH)?,
        })
    }

    /// Reads `ID.SECRET`.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let is_word = |word: &str, length: usize| {
            word.len() == length
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        (is_word(id, ID_LENGTH) && is_word(secret, SECRET_LENGTH)).then(|| Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// The public part, which names the token.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole token, to be handed to anyone who will use it.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The Secret that makes the token good, without what would give the token away. `groups` are
    /// further groups, which have to begin with `system:bootstrappers:`.
    pub fn to_secret(
        &self,
        description: &str,
        groups: &[&str],
        expires: Option<Timestamp>,
    ) -> Value {
        let mut data = json!({
            "token-id": BASE64.encode(&self.id),
            HASH: BASE64.encode(self.hash()),
            "usage-bootstrap-authentication": BASE64.encode("true"),
            "description": BASE64.encode(description),
        });
        if !groups.is_empty() {
            data["auth-extra-groups"] = BASE64.encode(groups.join(",")).into();
        }
        if let Some(expires) = expires {
            data["expiration"] = BASE64.encode(time::format_time(expires)).into();
        }
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": TYPE,
            "metadata": {"name": format!("bootstrap-token-{}", self.id), "namespace": "kube-system"},
            "data": data,
        })
    }

    /// The id is in the hash, so that equal secrets of two tokens do not show.
    fn hash(&self) -> String {
        crate::discovery::hex(&Sha256::digest(self.reveal())).to_lowercase()
    }

    /// Who shows this token, if it is good in the cluster.
    pub(crate) fn redeem(&self, cluster: &Cluster) -> Option<Identity> {
        let entry = cluster.keyspace().get(&format!("{PREFIX}{}", self.id))?;
        if entry.value.is_deleting() {
            return None;
        }
        let secret = Contents(entry.value.to_untyped_value());
        let good = secret.is_bootstrap_token()
            && self.is_held_by(&secret)
            && secret.text("token-id") == self.id
            && !secret.has_expired(cluster.clock().now())
            && secret.text("usage-bootstrap-authentication") == "true";
        let groups = secret.groups()?;
        good.then(|| Identity::authenticated(format!("system:bootstrap:{}", self.id), groups))
    }

    fn is_held_by(&self, secret: &Contents) -> bool {
        let clear = secret.text("token-secret");
        if clear.is_empty() {
            return same(secret.text(HASH).as_bytes(), self.hash().as_bytes());
        }
        same(clear.as_bytes(), self.secret.as_bytes())
    }
}

/// The Secret of a bootstrap token.
#[derive(Debug)]
pub(crate) struct Contents(pub(crate) Value);

impl Contents {
    /// Whether it is one.
    pub(crate) fn is_bootstrap_token(&self) -> bool {
        self.0["type"] == TYPE
    }

    fn text(&self, key: &str) -> String {
        let encoded = self.0["data"][key].as_str().unwrap_or_default();
        let decoded = BASE64.decode(encoded).unwrap_or_default();
        String::from_utf8(decoded).unwrap_or_default()
    }

    /// When the token expires. What cannot be read as a time has expired long ago.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        let text = self.text("expiration");
        (!text.is_empty()).then(|| text.parse().unwrap_or(Timestamp::UNIX_EPOCH))
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires().is_some_and(|at| at <= now)
    }

    /// The groups of the token; `None` if it claims one that is not for such tokens.
    fn groups(&self) -> Option<Vec<String>> {
        let extra = self.text("auth-extra-groups");
        let mut groups = vec![GROUP.to_owned()];
        for group in extra.split(',').filter(|group| !group.is_empty()) {
            let rest = group.strip_prefix(GROUP)?.strip_prefix(':')?;
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b':';
            let last = *rest.as_bytes().last()?;
            let fits = rest.len() <= 256
                && rest.bytes().all(|byte| is_plain(byte) || byte == b'-')
                && is_plain(last)
                && last != b':';
            if !fits {
                return None;
            }
            groups.push(group.to_owned());
        }
        groups.sort();
        groups.dedup();
        Some(groups)
    }
}

/// Random letters and digits, all equally likely.
fn random_text(length: usize) -> Result<String, PkiError> {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    /// The largest multiple of the number of letters: bytes above it would favour some.
    const FAIR: u8 = 252;
    let random = SystemRandom::new();
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0_u8; 32];
        random
            .fill(&mut bytes)
            .map_err(|error| PkiError::new("create a token", &error))?;
        let letters = bytes
            .iter()
            .filter(|byte| **byte < FAIR)
            .map(|byte| char::from(LETTERS[usize::from(byte % 36)]));
        text.extend(letters.take(length - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_token_is_recognized_by_its_hash_alone() {
        let token = BootstrapToken::generate().unwrap();
        let secret = token.to_secret("for a test", &["system:bootstrappers:a"], None);
        assert!(!secret.to_string().contains(&token.secret));
        assert!(!format!("{token:?}").contains(&token.secret));
        let held = Contents(secret);
        assert!(token.is_held_by(&held));
        let mut other = BootstrapToken::generate().unwrap();
        assert!(!other.is_held_by(&held));
        other.secret.clone_from(&token.secret);
        assert!(!other.is_held_by(&held), "the id belongs to the token");
        assert_eq!(BootstrapToken::parse(&token.reveal()), Some(token));
    }

    #[test]
    fn tokens_have_a_fixed_form() {
        for text in [
            "",
            ".",
            "abcdef",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdefg",
            "ABCDEF.0123456789abcdef",
            "abcde-.0123456789abcdef",
            "abcdef.0123456789abcdef.x",
        ] {
            assert_eq!(BootstrapToken::parse(text), None, "{text}");
        }
        assert!(BootstrapToken::parse("abcdef.0123456789abcdef").is_some());
    }

    #[test]
    fn groups_are_those_of_bootstrappers_only() {
        let groups = |text: &str| {
            let data = json!({"data": {"auth-extra-groups": BASE64.encode(text)}});
            Contents(data).groups()
        };
        assert_eq!(groups(""), Some(vec![GROUP.to_owned()]));
        assert_eq!(
            groups("system:bootstrappers:a,system:bootstrappers:a:b-c"),
            Some(vec![
                GROUP.to_owned(),
                "system:bootstrappers:a".to_owned(),
                "system:bootstrappers:a:b-c".to_owned()
            ])
        );
        for wrong in [
            "system:masters",
            "system:bootstrappers:",
            "system:bootstrappersx",
            "system:bootstrappers:a,system:masters",
            "system:bootstrappers:A",
            "system:bootstrappers:a-",
        ] {
            assert_eq!(groups(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_unreadable_expiry_has_passed() {
        let with = |text: &str| Contents(json!({"data": {"expiration": BASE64.encode(text)}}));
        let now = Timestamp::from_second(1_000_000).unwrap();
        assert!(!Contents(json!({})).has_expired(now));
        assert!(with("tomorrow").has_expired(now));
        assert!(with("1970-01-01T00:00:00Z").has_expired(now));
        assert!(!with("2100-01-01T00:00:00Z").has_expired(now));
    }
}
