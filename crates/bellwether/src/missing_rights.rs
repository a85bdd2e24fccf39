//! Reports which rights a process lacks, and for what.

use std::time::Duration;

use bellwether_controllers::rights::{MissingRight, review};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;

use crate::cli::say;

/// How often rights are looked at.
const INTERVAL: Duration = Duration::from_mins(1);

/// The rights that parts of a process need: who, and what.
pub(crate) type Needed = Vec<(&'static str, Vec<PolicyRule>)>;

/// Prints each right that is missing, and later each one that is granted, for as long as it is polled.
pub(crate) async fn report(client: Client, needed: Needed) {
    let mut known: Vec<MissingRight> = Vec::new();
    loop {
        match review(&client, &needed).await {
            Ok(missing) => {
                for right in missing.iter().filter(|right| !known.contains(right)) {
                    say(&format!("a right is missing: {right}"));
                    tracing::warn!(part = right.part, "a right is missing: {right}");
                }
                for right in known.iter().filter(|right| !missing.contains(right)) {
                    say(&format!("a right is no longer missing: {right}"));
                }
                known = missing;
            }
            Err(error) => tracing::debug!(%error, "cannot ask which rights there are"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
