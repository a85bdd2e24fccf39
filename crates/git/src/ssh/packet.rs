//! Packets: plain ones until keys are agreed on, sealed ones with AES-GCM (RFC 5647, as OpenSSH has it) afterwards.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::SshError;

/// The largest packet that is read. Others have to be able to send 35,000 bytes.
const MAX_PACKET: usize = 256 * 1024;
/// Packets are filled up to a multiple of this.
const BLOCK: usize = 16;
/// The fewest bytes that a packet is filled up with.
const MIN_PADDING: usize = 4;
const TAG: usize = 16;
const LENGTH: usize = 4;

/// A cipher that both sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// `aes256-gcm@openssh.com`
    Aes256,
    /// `aes128-gcm@openssh.com`
    Aes128,
}

impl Cipher {
    /// Names of all ciphers, the best first.
    pub const NAMES: [&str; 2] = ["aes256-gcm@openssh.com", "aes128-gcm@openssh.com"];

    /// Finds a cipher by its name.
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "aes256-gcm@openssh.com" => Some(Self::Aes256),
            "aes128-gcm@openssh.com" => Some(Self::Aes128),
            _ => None,
        }
    }

    fn key_size(self) -> usize {
        match self {
            Self::Aes256 => 32,
            Self::Aes128 => 16,
        }
    }
}

/// The key of one direction.
pub struct Seal {
    key: LessSafeKey,
    nonce: [u8; NONCE_LEN],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// A key and the first nonce, from what was derived for them.
    pub fn new(cipher: Cipher, key: &[u8], nonce: &[u8]) -> Option<Self> {
        let algorithm = match cipher {
            Cipher::Aes256 => &AES_256_GCM,
            Cipher::Aes128 => &AES_128_GCM,
        };
        let key = UnboundKey::new(algorithm, key.get(..cipher.key_size())?).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            nonce: nonce.get(..NONCE_LEN)?.try_into().ok()?,
        })
    }

    /// The nonce of this packet. The last eight bytes count packets.
    fn next_nonce(&mut self) -> Nonce {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        for byte in self.nonce[NONCE_LEN - 8..].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        nonce
    }
}

/// Makes a packet.
pub fn write(payload: &[u8], seal: Option<&mut Seal>) -> Result<Vec<u8>, SshError> {
    // The length counts for plain packets, and does not for sealed ones.
    let counted = 1 + payload.len() + if seal.is_some() { 0 } else { LENGTH };
    let mut padding = BLOCK - counted % BLOCK;
    if padding < MIN_PADDING {
        padding += BLOCK;
    }
    let unwritable = || SshError::protocol("a packet cannot be made");
    let length = u32::try_from(1 + payload.len() + padding).map_err(|_| unwritable())?;
    let mut packet = Vec::with_capacity(LENGTH + 1 + payload.len() + padding + TAG);
    packet.extend_from_slice(&length.to_be_bytes());
    packet.push(u8::try_from(padding).map_err(|_| unwritable())?);
    packet.extend_from_slice(payload);
    let mut random = [0; 2 * BLOCK];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| unwritable())?;
    packet.extend_from_slice(&random[..padding]);
    if let Some(seal) = seal {
        let nonce = seal.next_nonce();
        let (header, body) = packet.split_at_mut(LENGTH);
        let aad = Aad::from(&*header);
        let tag = seal.key.seal_in_place_separate_tag(nonce, aad, body);
        let tag = tag.map_err(|_| unwritable())?;
        packet.extend_from_slice(tag.as_ref());
    }
    Ok(packet)
}

/// How many bytes the packet has that begins here, once its length is there.
pub fn size(bytes: &[u8], is_sealed: bool) -> Result<Option<usize>, SshError> {
    let Some(header) = bytes.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*header) as usize;
    let is_whole = !is_sealed || length.is_multiple_of(BLOCK);
    if !(1 + MIN_PADDING..=MAX_PACKET).contains(&length) || !is_whole {
        return Err(SshError::protocol(
            "the server sent a packet whose length is not possible",
        ));
    }
    Ok(Some(LENGTH + length + if is_sealed { TAG } else { 0 }))
}

/// The payload of a packet that is all there.
pub fn read(mut packet: Vec<u8>, seal: Option<&mut Seal>) -> Result<Vec<u8>, SshError> {
    let damaged = || SshError::protocol("the server sent a damaged packet");
    if let Some(seal) = seal {
        let nonce = seal.next_nonce();
        let (header, body) = packet.split_at_mut_checked(LENGTH).ok_or_else(damaged)?;
        let aad = Aad::from(&*header);
        seal.key
            .open_in_place(nonce, aad, body)
            .map_err(|_| damaged())?;
        let left = packet.len().saturating_sub(TAG);
        packet.truncate(left);
    }
    let padding = usize::from(*packet.get(LENGTH).ok_or_else(damaged)?);
    let end = packet.len().checked_sub(padding).ok_or_else(damaged)?;
    let payload = packet.get(LENGTH + 1..end).ok_or_else(damaged)?;
    if payload.is_empty() || padding < MIN_PADDING {
        return Err(damaged());
    }
    Ok(payload.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(cipher: Cipher) -> Seal {
        Seal::new(cipher, &[7; 32], &[0xff; 32]).unwrap()
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        for length in [1, 2, 11, 12, 13, 27, 28, 1000] {
            let payload = vec![9; length];
            let plain = write(&payload, None).unwrap();
            assert_eq!(size(&plain, false).unwrap(), Some(plain.len()));
            assert!(plain.len().is_multiple_of(8));
            assert_eq!(read(plain, None).unwrap(), payload);
            for cipher in [Cipher::Aes256, Cipher::Aes128] {
                let (mut ours, mut theirs) = (seal(cipher), seal(cipher));
                for _ in 0..3 {
                    let sealed = write(&payload, Some(&mut ours)).unwrap();
                    assert_eq!(size(&sealed, true).unwrap(), Some(sealed.len()));
                    assert_eq!(read(sealed, Some(&mut theirs)).unwrap(), payload);
                }
            }
        }
    }

    #[test]
    fn packets_that_were_changed_or_repeated_are_refused() {
        let mut ours = seal(Cipher::Aes256);
        let sealed = write(b"payload", Some(&mut ours)).unwrap();
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(read(changed, Some(&mut seal(Cipher::Aes256))).is_err());
        }
        let mut theirs = seal(Cipher::Aes256);
        assert!(read(sealed.clone(), Some(&mut theirs)).is_ok());
        assert!(read(sealed, Some(&mut theirs)).is_err());
    }

    #[test]
    fn lengths_that_are_not_possible_are_refused() {
        for header in [[0, 0, 0, 0], [0, 0, 0, 4], [0xff; 4], [0, 8, 0, 0]] {
            assert!(size(&header, false).is_err(), "{header:?}");
        }
        assert!(size(&[0, 0, 0, 17], true).is_err());
        assert_eq!(size(&[0, 0, 0], false).unwrap(), None);
        assert!(read(vec![0, 0, 0, 5, 200, 1, 2, 3, 4], None).is_err());
        assert!(read(Vec::new(), None).is_err());
    }
}
