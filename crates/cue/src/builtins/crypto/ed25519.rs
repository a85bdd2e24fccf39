//! Checking Ed25519 signatures (RFC 8032).

use ring::signature::{ED25519, UnparsedPublicKey};

/// Whether `signature` is one of `message` by the owner of `key`.
pub(super) fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, key);
    key.verify(message, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::verify;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        std::array::from_fn(|index| {
            u8::from_str_radix(&hex[index * 2..index * 2 + 2], 16).expect("hexadecimal")
        })
    }

    /// The second test of RFC 8032, section 7.1.
    const KEY: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    #[test]
    fn a_signature_holds_for_its_message_and_key_only() {
        let (key, signature) = (bytes(KEY), bytes(SIGNATURE));
        assert!(verify(&key, &[0x72], &signature));
        assert!(!verify(&key, &[0x73], &signature));
        assert!(!verify(&[0; 32], &[0x72], &signature));
        let mut broken = signature;
        broken[40] ^= 1;
        assert!(!verify(&key, &[0x72], &broken));
    }

    #[test]
    fn a_scalar_beyond_the_order_is_rejected() {
        let mut signature = bytes(SIGNATURE);
        signature[32..].fill(0xff);
        assert!(!verify(&bytes(KEY), &[0x72], &signature));
    }
}
