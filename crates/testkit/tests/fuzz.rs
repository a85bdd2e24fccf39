//! The seeds of the fuzzers: each was, or could be, a case that an engine stumbles over.

#[path = "../examples/engines-fuzz/engines.rs"]
mod engines;

use std::time::Duration;

use bellwether_testkit::Fuzzer;
use engines::{ENGINES, seeds};

/// How long a case may take in a build without optimizations. Seeds that use up the whole budget of templates
/// are in files of their own, which only the fuzzer reads.
const SLOW_HERE: Duration = Duration::from_mins(1);

#[test]
fn every_seed_is_answered_in_time_and_within_memory() {
    for (name, package, answer) in ENGINES {
        let fuzzer = Fuzzer::new(1, &[seeds(name, package)]).expect("the seeds can be read");
        let found = fuzzer.run(Duration::ZERO, SLOW_HERE, answer);
        assert!(found.failure.is_none(), "{name}: {:?}", found.failure);
        assert!(found.tried > 0, "{name} has no seeds");
    }
}
