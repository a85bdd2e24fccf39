//! Reports which rights a process lacks, and for what.

use std::time::Duration;

use bellwether_controllers::rights::{MissingRight, SYSTEM_NAMESPACE, review, review_in};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;

use crate::output::say;

/// How often rights are looked at.
const INTERVAL: Duration = Duration::from_mins(1);

/// The rights that parts of a process need: who, and what.
pub type Needed = Vec<(&'static str, Vec<PolicyRule>)>;

/// Prints each right that is missing, and later each one that is granted, for as long as it is polled.
/// `in_system` are those in the namespace of the system only.
pub async fn report(client: Client, needed: Needed, in_system: Needed) {
    let mut known: Vec<MissingRight> = Vec::new();
    loop {
        match review_all(&client, &needed, &in_system).await {
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

/// Returns all rights that are missing.
async fn review_all(
    client: &Client,
    needed: &Needed,
    in_system: &Needed,
) -> Result<Vec<MissingRight>, kube::Error> {
    let mut missing = review(client, needed).await?;
    if !in_system.is_empty() {
        missing.extend(review_in(client, Some(SYSTEM_NAMESPACE), in_system).await?);
    }
    Ok(missing)
}
