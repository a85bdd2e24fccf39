//! What agents do with works: the same cases on embedded clusters and on two real API servers.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

use crate::fleet;

pub(crate) mod apply;
pub(crate) mod completion;
pub(crate) mod dependencies;
pub(crate) mod documents;
pub(crate) mod feedback;
pub(crate) mod replica_sets;
pub(crate) mod sharing;
pub(crate) mod strategies;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bellwether_testkit::RealPair;
use fleet::{Case, Fleet};
use futures::FutureExt as _;

/// How long a case may take on servers that have other things to do as well.
const TEST_TIMEOUT: Duration = Duration::from_mins(3);

/// The cases by the ideas that they are about.
const CASES: [&[(&str, Case)]; 8] = [
    apply::ALL,
    strategies::ALL,
    completion::ALL,
    dependencies::ALL,
    feedback::ALL,
    documents::ALL,
    sharing::ALL,
    replica_sets::ALL,
];

/// One test for all cases: they share the servers, which end with it.
#[tokio::test]
async fn every_case_holds_on_real_servers() {
    let pair = match RealPair::start().await {
        Ok(pair) => Arc::new(pair),
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let chosen = chosen();
    let mut failed = Vec::new();
    for (name, case) in CASES.into_iter().flatten() {
        if !name.contains(&chosen) {
            continue;
        }
        let run = async {
            let mut fleet = Fleet::on_real_servers(&pair).await;
            case(&mut fleet).await;
        };
        let ended = AssertUnwindSafe(tokio::time::timeout(TEST_TIMEOUT, run)).catch_unwind();
        let holds = matches!(ended.await, Ok(Ok(())));
        eprintln!("{name} ... {}", if holds { "ok" } else { "FAILED" });
        if !holds {
            failed.push(*name);
        }
        pair.clean().await;
    }
    assert!(failed.is_empty(), "on real servers these fail: {failed:#?}");
}

/// Only cases whose name has this in it, to look into one of them.
pub(crate) fn chosen() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no command line of their own"
    )]
    std::env::var("BELLWETHER_CASE").unwrap_or_default()
}
