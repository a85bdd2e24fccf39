//! A short run of the fuzzer, the same inputs every time. The long one is the example `cue-fuzz`.

#[path = "../../examples/cue-fuzz/exercise.rs"]
mod exercise;
#[path = "../../examples/cue-fuzz/mutate.rs"]
mod mutate;

use exercise::exercise;
use mutate::{Mutator, seeds};

#[test]
fn every_seed_can_be_exercised() {
    for seed in seeds() {
        assert_eq!(exercise(&seed), Ok(()), "{seed}");
    }
}

#[test]
fn mutations_of_the_seeds_hold_the_properties() {
    let mut mutator = Mutator::new(7, seeds());
    for _ in 0..1_500 {
        let input = mutator.next_input();
        assert_eq!(exercise(&input), Ok(()), "{input}");
    }
}
