//! Identities of executions of steps: ten letters and digits, the same whenever they are asked for.

/// What identities are made of.
const ALPHABET: &[u8; 35] = b"abcdefghijklmnopqrstuvwxyz123456789";
/// How long they are.
const LENGTH: usize = 10;

/// The identity of a step in a round of a workflow.
pub(crate) fn of(uid: &str, round: u64, step: &str) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let bytes = uid
        .bytes()
        .chain([0])
        .chain(round.to_le_bytes())
        .chain(step.bytes());
    for byte in bytes {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    // The low half of this hash mixes worst.
    hash ^= hash >> 64;
    let mut text = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let letter = usize::try_from(hash % 35).unwrap_or_default();
        text.push(char::from(ALPHABET[letter]));
        hash /= 35;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identities_differ_by_run_round_and_step() {
        let mut seen = BTreeSet::new();
        for uid in ["1", "2"] {
            for round in 0..20 {
                for step in 0..50 {
                    seen.insert(of(uid, round, &format!("step-{step}")));
                }
            }
        }
        assert_eq!(seen.len(), 2000);
        assert_eq!(of("1", 0, "a"), of("1", 0, "a"));
    }
}
