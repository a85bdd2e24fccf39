//! Tokens that resume a suspended step, for people who approve from a chat or a pipeline.
//!
//! A token names one execution of a step, and is signed with a key of the hub. It is not stored anywhere: it
//! is worth something only while this execution is suspended, so it can be used once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What the workflow belongs to: `run` or `app`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of the execution of the step.
    pub step_id: String,
}

/// The key that tokens are signed with.
#[derive(Clone)]
pub struct ResumeKey(Vec<u8>);

impl std::fmt::Debug for ResumeKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ResumeKey(…)")
    }
}

impl ResumeKey {
    /// A key of at least 32 bytes; none of fewer.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= 32).then_some(Self(bytes))
    }

    fn signature(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut signature = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        signature.update(text.as_bytes());
        Some(signature)
    }

    /// The token for an execution of a step.
    pub fn token(&self, claim: &Claim) -> String {
        let text = [&claim.kind, &claim.namespace, &claim.name, &claim.step_id];
        let text = text.map(String::as_str).join("/");
        let text = URL_SAFE_NO_PAD.encode(text);
        // A key of any length will do for this signature.
        let signature = self.signature(&text).map(|it| it.finalize().into_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap_or_default());
        format!("{text}.{signature}")
    }

    /// What a token is for; none of a token that was not signed with this key.
    pub fn verify(&self, token: &str) -> Option<Claim> {
        let (text, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.signature(text)?.verify_slice(&signature).ok()?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.split('/').map(str::to_owned);
        let claim = Claim {
            kind: parts.next()?,
            namespace: parts.next()?,
            name: parts.next()?,
            step_id: parts.next()?,
        };
        parts.next().is_none().then_some(claim)
    }
}

/// What a status shows of a token.
pub fn hash(token: &str) -> String {
    format!("{:x}", Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(step_id: &str) -> Claim {
        Claim {
            kind: "run".to_owned(),
            namespace: "shop".to_owned(),
            name: "release-1".to_owned(),
            step_id: step_id.to_owned(),
        }
    }

    #[test]
    fn a_token_says_what_it_is_for_and_cannot_be_made_up() {
        let key = ResumeKey::new(vec![7; 32]).unwrap();
        let token = key.token(&claim("abc"));
        assert_eq!(key.verify(&token), Some(claim("abc")));
        let other = ResumeKey::new(vec![8; 32]).unwrap();
        assert_eq!(other.verify(&token), None);
        let (_, signature) = token.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode("run/shop/release-1/xyz");
        assert_eq!(key.verify(&format!("{forged}.{signature}")), None);
        for broken in ["", ".", "a", "a.b", &token[1..]] {
            assert_eq!(key.verify(broken), None, "{broken}");
        }
        assert!(ResumeKey::new(vec![1; 31]).is_none());
    }
}
