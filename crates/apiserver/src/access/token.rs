//! Signed tokens of service accounts: JSON web tokens with ES256, made and checked here and nowhere
//! else. What a token says is believed only after its signature; whether the account still exists is
//! asked in [`super::service_account`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::pki::PkiError;

/// The longest token that is read. Ours have some six hundred bytes.
const LONGEST: usize = 8 * 1024;

/// The key that signs the tokens of all service accounts of a server.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    pem: String,
    /// Names the key in the header of a token.
    id: String,
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenKey({})", self.id)
    }
}

/// An object that a token names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its uid: a namesake with another uid is somebody else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Whom a token stands for, and what it ends with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Holder {
    pub namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    #[serde(rename = "serviceaccount")]
    pub account: Reference,
}

/// What a token says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Claims {
    #[serde(rename = "aud")]
    pub audiences: Vec<String>,
    /// In seconds since 1970, as all times here; `None` for the token in a Secret.
    #[serde(rename = "exp", skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    #[serde(rename = "iat")]
    pub issued: i64,
    /// Names the cluster.
    #[serde(rename = "iss")]
    pub issuer: String,
    #[serde(rename = "jti")]
    pub id: String,
    #[serde(rename = "kubernetes.io")]
    pub holder: Holder,
    #[serde(rename = "nbf")]
    pub not_before: i64,
    #[serde(rename = "sub")]
    pub subject: String,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
}

impl TokenKey {
    /// A new key.
    pub fn generate() -> Result<Self, PkiError> {
        let key = rcgen::KeyPair::generate()
            .map_err(|error| PkiError::new("create a key for tokens", &error))?;
        Self::load(&key.serialize_pem())
    }

    /// The key that was generated before.
    pub fn load(pem: &str) -> Result<Self, PkiError> {
        const ATTEMPT: &str = "read the key for tokens";
        let key = rcgen::KeyPair::from_pem(pem).map_err(|error| PkiError::new(ATTEMPT, &error))?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            key.serialized_der(),
            &random,
        )
        .map_err(|error| PkiError::new(ATTEMPT, &error))?;
        let id = BASE64.encode(Sha256::digest(pair.public_key()));
        Ok(Self {
            pair,
            random,
            pem: pem.to_owned(),
            id,
        })
    }

    /// The private key in PEM, to be kept where only the owner reads it.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A token that says this.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<String, PkiError> {
        const ATTEMPT: &str = "sign a token";
        let header = json!({"alg": "ES256", "kid": self.id});
        let claims = serde_json::to_vec(claims).map_err(|error| PkiError::new(ATTEMPT, &error))?;
        let mut token = format!(
            "{}.{}",
            BASE64.encode(header.to_string()),
            BASE64.encode(claims)
        );
        let signature = self
            .pair
            .sign(&self.random, token.as_bytes())
            .map_err(|error| PkiError::new(ATTEMPT, &error))?;
        token.push('.');
        token.push_str(&BASE64.encode(signature));
        Ok(token)
    }

    /// What a token says, if this key signed it; times and audiences are not looked at.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        // The header decides nothing: there is one algorithm and one key.
        if header.alg != "ES256" {
            return None;
        }
        let signature = BASE64.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
    }

    /// The public key as a JSON web key, for those who check tokens themselves.
    pub(crate) fn public_key(&self) -> Value {
        // An uncompressed point: a byte that says so, then x and y.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(32);
        json!({
            "use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": self.id,
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        })
    }
}

/// Whether a token looks like one of ours, anyone who signed it.
pub(crate) fn looks_signed(token: &str) -> bool {
    token.split('.').count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            audiences: vec!["a".into()],
            expires: Some(7),
            subject: "system:serviceaccount:x:y".into(),
            ..Claims::default()
        }
    }

    #[test]
    fn a_token_survives_the_round_trip_and_a_restart() {
        let key = TokenKey::generate().unwrap();
        let token = key.sign(&claims()).unwrap();
        assert!(looks_signed(&token));
        let again = TokenKey::load(key.pem()).unwrap();
        assert_eq!(again.verify(&token), Some(claims()));
        assert_eq!(again.public_key(), key.public_key());
    }

    #[test]
    fn a_token_that_was_changed_is_refused() {
        let key = TokenKey::generate().unwrap();
        let token = key.sign(&claims()).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let forged = BASE64.encode(
            serde_json::to_vec(&Claims {
                subject: "system:serviceaccount:kube-system:root".into(),
                ..claims()
            })
            .unwrap(),
        );
        let none = BASE64.encode(r#"{"alg":"none"}"#);
        let hmac = BASE64.encode(r#"{"alg":"HS256"}"#);
        let other = TokenKey::generate().unwrap();
        for wrong in [
            format!("{}.{forged}.{}", parts[0], parts[2]),
            format!("{none}.{}.", parts[1]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{hmac}.{}.{}", parts[1], parts[2]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{token}x"),
            format!("{token}="),
            format!(".{token}"),
            other.sign(&claims()).unwrap(),
            "x".repeat(LONGEST + 1),
            String::new(),
            "..".into(),
        ] {
            assert_eq!(key.verify(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let key = TokenKey::generate().unwrap();
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }
}
