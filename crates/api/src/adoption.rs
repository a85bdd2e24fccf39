//! What is noted on the controllers of others while their hub is ours.

/// On a Deployment: how many replicas it had.
pub const REPLICAS: &str = "adopt.bellwether.dev/replicas";

/// On a webhook configuration: the failure policies that its webhooks had, in order.
pub const FAILURE_POLICIES: &str = "adopt.bellwether.dev/failure-policies";
