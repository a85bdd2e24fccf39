//! Checking Ed25519 signatures (RFC 8032) with big integers.
//!
//! Only public data is involved, so nothing here has to run in constant time; and a template
//! checks a signature once in a while, so nothing has to be fast. The check is the one of RFC 8032
//! without the cofactor, as Go does it.

use num_bigint::BigUint;
use sha2::{Digest as _, Sha512};

/// A point of the curve in extended coordinates: x = X/Z, y = Y/Z, xy = T/Z.
#[derive(Clone)]
struct Point {
    x: BigUint,
    y: BigUint,
    z: BigUint,
    t: BigUint,
}

/// The curve: its field, its order, and the constants of its equation.
struct Curve {
    /// The prime 2^255 - 19.
    prime: BigUint,
    /// The order of the base point.
    order: BigUint,
    /// The constant d of the equation -x² + y² = 1 + d x² y².
    d: BigUint,
}

/// Whether `signature` is one of `message` by the owner of `key`.
pub(super) fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let curve = Curve::new();
    let (point_bytes, scalar_bytes) = signature.split_at(32);
    let scalar = BigUint::from_bytes_le(scalar_bytes);
    if scalar >= curve.order {
        return false;
    }
    let (Some(owner), Some(base)) = (curve.decode(key), curve.base()) else {
        return false;
    };
    let digest = Sha512::new()
        .chain_update(point_bytes)
        .chain_update(key)
        .chain_update(message)
        .finalize();
    let challenge = BigUint::from_bytes_le(&digest) % &curve.order;
    // R = s·B - k·A, compared in its encoded form.
    let negated = Point {
        x: curve.negate(&owner.x),
        t: curve.negate(&owner.t),
        ..owner
    };
    let result = curve.add(
        &curve.multiply(&base, &scalar),
        &curve.multiply(&negated, &challenge),
    );
    curve.encode(&result) == point_bytes
}

impl Curve {
    fn new() -> Self {
        let one = BigUint::from(1_u32);
        let prime = (&one << 255_u32) - 19_u32;
        let order = (&one << 252_u32)
            + BigUint::from(27_742_317_777_372_353_535_851_937_790_883_648_493_u128);
        // d = -121665 / 121666
        let numerator = &prime - 121_665_u32;
        let inverse = BigUint::from(121_666_u32).modpow(&(&prime - 2_u32), &prime);
        let d = numerator * inverse % &prime;
        Self { prime, order, d }
    }

    /// The base point: y = 4/5, x even.
    fn base(&self) -> Option<Point> {
        let y = self.product(&BigUint::from(4_u32), &self.inverse(&BigUint::from(5_u32)));
        let mut bytes = [0_u8; 32];
        for (to, from) in bytes.iter_mut().zip(y.to_bytes_le()) {
            *to = from;
        }
        self.decode(&bytes)
    }

    fn product(&self, left: &BigUint, right: &BigUint) -> BigUint {
        left * right % &self.prime
    }

    fn negate(&self, value: &BigUint) -> BigUint {
        (&self.prime - value % &self.prime) % &self.prime
    }

    fn minus(&self, left: &BigUint, right: &BigUint) -> BigUint {
        (left + self.negate(right)) % &self.prime
    }

    fn inverse(&self, value: &BigUint) -> BigUint {
        value.modpow(&(&self.prime - 2_u32), &self.prime)
    }

    /// The point that 32 bytes stand for: y, and the sign of x in the highest bit.
    fn decode(&self, bytes: &[u8; 32]) -> Option<Point> {
        let mut bytes = *bytes;
        let is_odd = bytes[31] & 0x80 != 0;
        bytes[31] &= 0x7f;
        let one = BigUint::from(1_u32);
        // A y beyond the prime is accepted and reduced, as in Go.
        let y = BigUint::from_bytes_le(&bytes) % &self.prime;
        let square = self.product(&y, &y);
        let above = self.minus(&square, &one);
        let below = (self.product(&self.d, &square) + &one) % &self.prime;
        let quotient = self.product(&above, &self.inverse(&below));
        let mut x = self.root(&quotient)?;
        if x.bit(0) != is_odd {
            x = self.negate(&x);
        }
        let t = self.product(&x, &y);
        Some(Point { x, y, z: one, t })
    }

    /// A square root, if there is one.
    fn root(&self, value: &BigUint) -> Option<BigUint> {
        let exponent = (&self.prime + 3_u32) >> 3_u32;
        let candidate = value.modpow(&exponent, &self.prime);
        if self.product(&candidate, &candidate) == *value {
            return Some(candidate);
        }
        // Times the square root of -1.
        let unit = BigUint::from(2_u32).modpow(&((&self.prime - 1_u32) >> 2_u32), &self.prime);
        let candidate = self.product(&candidate, &unit);
        (self.product(&candidate, &candidate) == *value).then_some(candidate)
    }

    fn encode(&self, point: &Point) -> [u8; 32] {
        let inverse = self.inverse(&point.z);
        let x = self.product(&point.x, &inverse);
        let y = self.product(&point.y, &inverse);
        let mut bytes = [0_u8; 32];
        for (to, from) in bytes.iter_mut().zip(y.to_bytes_le()) {
            *to = from;
        }
        if x.bit(0) {
            bytes[31] |= 0x80;
        }
        bytes
    }

    /// Addition after Hisil et al., complete for this curve: doubling needs no case of its own.
    fn add(&self, left: &Point, right: &Point) -> Point {
        let differences = self.product(
            &self.minus(&left.y, &left.x),
            &self.minus(&right.y, &right.x),
        );
        let sums = self.product(&(&left.y + &left.x), &(&right.y + &right.x));
        let skew = self.product(&self.product(&left.t, &right.t), &(&self.d * 2_u32));
        let scale = self.product(&left.z, &(&right.z * 2_u32));
        let (east, west) = (
            self.minus(&sums, &differences),
            (&sums + &differences) % &self.prime,
        );
        let (lower, upper) = (self.minus(&scale, &skew), (&scale + &skew) % &self.prime);
        Point {
            x: self.product(&east, &lower),
            y: self.product(&upper, &west),
            z: self.product(&lower, &upper),
            t: self.product(&east, &west),
        }
    }

    fn multiply(&self, point: &Point, scalar: &BigUint) -> Point {
        let mut result = Point {
            x: BigUint::ZERO,
            y: BigUint::from(1_u32),
            z: BigUint::from(1_u32),
            t: BigUint::ZERO,
        };
        for bit in (0..scalar.bits()).rev() {
            result = self.add(&result, &result);
            if scalar.bit(bit) {
                result = self.add(&result, point);
            }
        }
        result
    }
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
