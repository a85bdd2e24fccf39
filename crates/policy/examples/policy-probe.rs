//! Answers JSON lines on standard input, for `cargo xtask corpus`: cases with a `template` are resolved, others are
//! dry runs.

use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_policy::{dryrun, template};
use bellwether_template::{NOWHERE, World};
use serde_json::Value;

/// Numbers that do not repeat, which is all that cases need.
fn random(bytes: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    for chunk in bytes.chunks_mut(8) {
        let mut mixed = NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
    }
}

fn main() -> std::io::Result<()> {
    let world = World {
        facts: NOWHERE.facts,
        now: jiff::Timestamp::constant(1_700_000_000, 123_456_789),
        random: &random,
    };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let case: Value = serde_json::from_str(&line).unwrap_or_default();
        let answer = match case.get("template") {
            Some(_) => template::probe::answer(&line, &world),
            None => dryrun::probe::answer(&line, &world),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}
