//! How both sides agree on keys: curve25519-sha256 (RFC 8731).

use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::encoding::{Reader, put_mpint, put_string, put_u32};
use super::packet::{Cipher, Seal};
use super::{SshError, cut_short, host_key, message};

/// Names of the one way to agree on keys: the standard's and the one from before it.
const METHODS: [&str; 2] = ["curve25519-sha256", "curve25519-sha256@libssh.org"];
/// Asks the server to accept nothing unexpected before there are keys, as this client does.
const STRICT: &str = "kex-strict-c-v00@openssh.com";
/// Asked for because the protocol wants a name; the ciphers need none.
const MACS: &str = "hmac-sha2-256,hmac-sha2-512";
const NO_COMPRESSION: &str = "none";
const COOKIE: usize = 16;

/// What a client offers, and the key that it made for this connection.
#[derive(Debug)]
pub struct Offer {
    /// The first message.
    pub init: Vec<u8>,
    algorithms: Vec<&'static str>,
    private: EphemeralPrivateKey,
    public: Vec<u8>,
}

/// What both sides agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    cipher_out: Cipher,
    cipher_in: Cipher,
    algorithm: &'static str,
}

/// What both sides know after they have agreed on keys.
#[derive(Debug)]
pub struct Keys {
    /// Names this connection.
    pub session: Vec<u8>,
    /// For what the client sends.
    pub outgoing: Seal,
    /// For what the server sends.
    pub incoming: Seal,
}

/// What was exchanged before keys: it is signed by the server.
#[derive(Debug, Clone, Copy)]
pub struct Greetings<'a> {
    /// The version of the client, without the end of the line.
    pub client: &'a [u8],
    /// The version of the server.
    pub server: &'a [u8],
    /// The first message of the server.
    pub server_init: &'a [u8],
}

impl Offer {
    /// Offers what is supported, with these algorithms for the key of the server.
    pub fn new(algorithms: Vec<&'static str>) -> Result<Self, SshError> {
        let random = SystemRandom::new();
        let failed = |_| SshError::protocol("there are no random numbers");
        let mut cookie = [0; COOKIE];
        random.fill(&mut cookie).map_err(failed)?;
        let private = EphemeralPrivateKey::generate(&X25519, &random).map_err(failed)?;
        let public = private.compute_public_key().map_err(failed)?;
        let mut init = vec![message::KEXINIT];
        init.extend_from_slice(&cookie);
        let methods = format!("{},{STRICT}", METHODS.join(","));
        let (keys, ciphers) = (algorithms.join(","), Cipher::NAMES.join(","));
        for list in [&*methods, &keys, &ciphers, &ciphers, MACS, MACS] {
            put_string(&mut init, list.as_bytes());
        }
        for list in [NO_COMPRESSION, NO_COMPRESSION, "", ""] {
            put_string(&mut init, list.as_bytes());
        }
        // Nothing is sent on a guess.
        init.push(0);
        put_u32(&mut init, 0);
        Ok(Self {
            init,
            algorithms,
            public: public.as_ref().to_vec(),
            private,
        })
    }

    /// What both sides have in common, by the first message of the server.
    pub fn agree(&self, server_init: &[u8]) -> Result<Agreed, SshError> {
        let mut reader = Reader::new(server_init);
        reader.take(1 + COOKIE).ok_or_else(cut_short)?;
        let mut list = || reader.text().ok_or_else(cut_short);
        let (methods, keys, out, back) = (list()?, list()?, list()?, list()?);
        let (_, _) = (list()?, list()?);
        let (packed_out, packed_in) = (list()?, list()?);
        common(&METHODS, methods, "exchange of keys")?;
        common(&[NO_COMPRESSION], packed_out, "compression")?;
        common(&[NO_COMPRESSION], packed_in, "compression")?;
        let cipher = |theirs: &str| {
            let name = common(&Cipher::NAMES, theirs, "cipher")?;
            Cipher::find(name).ok_or_else(|| SshError::protocol("there is no such cipher"))
        };
        Ok(Agreed {
            cipher_out: cipher(out)?,
            cipher_in: cipher(back)?,
            algorithm: common(&self.algorithms, keys, "algorithm of the key of the server")?,
        })
    }

    /// The second message.
    pub fn second(&self) -> Vec<u8> {
        let mut second = vec![message::ECDH_INIT];
        put_string(&mut second, &self.public);
        second
    }

    /// Takes the answer of the server: its key, which `is_trusted` decides about, and keys for this connection.
    pub fn finish(
        self,
        agreed: &Agreed,
        greetings: Greetings<'_>,
        reply: &[u8],
        is_trusted: impl FnOnce(&[u8]) -> Result<(), SshError>,
    ) -> Result<Keys, SshError> {
        let mut reader = Reader::new(reply);
        if reader.byte() != Some(message::ECDH_REPLY) {
            return Err(SshError::protocol("the server did not answer with its key"));
        }
        let mut string = || reader.string().ok_or_else(cut_short);
        let (key, public, signature) = (string()?, string()?, string()?);
        is_trusted(key)?;
        let theirs = UnparsedPublicKey::new(&X25519, public);
        // A secret of zeros is refused by ring.
        let secret = agree_ephemeral(self.private, &theirs, |secret| {
            let mut encoded = Vec::new();
            put_mpint(&mut encoded, secret);
            encoded
        });
        let secret = secret.map_err(|_| SshError::protocol("the keys cannot be agreed on"))?;
        let mut signed = Vec::new();
        for part in [
            greetings.client,
            greetings.server,
            &self.init,
            greetings.server_init,
            key,
            &self.public,
            public,
        ] {
            put_string(&mut signed, part);
        }
        signed.extend_from_slice(&secret);
        let hash = ring::digest::digest(&SHA256, &signed);
        if !host_key::verify(agreed.algorithm, key, hash.as_ref(), signature) {
            return Err(SshError::protocol(
                "the server does not have the key that it shows",
            ));
        }
        let derive = |letter: u8| derive(&secret, hash.as_ref(), letter);
        let seal = |cipher, key, nonce| {
            let seal = Seal::new(cipher, &derive(key), &derive(nonce));
            seal.ok_or_else(|| SshError::protocol("the keys are too short"))
        };
        Ok(Keys {
            outgoing: seal(agreed.cipher_out, b'C', b'A')?,
            incoming: seal(agreed.cipher_in, b'D', b'B')?,
            session: hash.as_ref().to_vec(),
        })
    }
}

/// A key of 32 bytes for the purpose that a letter stands for. The first hash names the session.
fn derive(secret: &[u8], hash: &[u8], letter: u8) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    context.update(secret);
    context.update(hash);
    context.update(&[letter]);
    context.update(hash);
    context.finish().as_ref().to_vec()
}

/// The first of ours that is among theirs.
fn common(ours: &[&'static str], theirs: &str, what: &str) -> Result<&'static str, SshError> {
    let found = ours
        .iter()
        .find(|name| theirs.split(',').any(|known| known == **name));
    found.copied().ok_or_else(|| {
        SshError::Protocol(format!(
            "there is no common {what}: the server has {theirs}, the client {}",
            ours.join(",")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_init(lists: [&str; 10]) -> Vec<u8> {
        let mut init = vec![message::KEXINIT];
        init.extend_from_slice(&[0; COOKIE]);
        for list in lists {
            put_string(&mut init, list.as_bytes());
        }
        init.extend_from_slice(&[0; 5]);
        init
    }

    #[test]
    fn the_first_of_the_client_that_the_server_has_is_taken() {
        let offer = Offer::new(vec!["ssh-ed25519", "rsa-sha2-512"]).unwrap();
        let lists = |keys, cipher| {
            let method = "other,curve25519-sha256";
            let both = "aes128-gcm@openssh.com,aes256-gcm@openssh.com";
            server_init([method, keys, both, cipher, "", "", "none", "none", "", ""])
        };
        let agreed = offer.agree(&lists("rsa-sha2-512", "aes128-gcm@openssh.com"));
        assert_eq!(
            agreed.unwrap(),
            Agreed {
                cipher_out: Cipher::Aes256,
                cipher_in: Cipher::Aes128,
                algorithm: "rsa-sha2-512"
            }
        );
        let error = offer.agree(&lists("ssh-dss", "aes128-gcm@openssh.com"));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("there is no common algorithm of the key"),
            "{error}"
        );
        assert!(offer.agree(&lists("ssh-ed25519", "3des-cbc")).is_err());
        assert!(offer.agree(&[message::KEXINIT; 20]).is_err());
    }
}
