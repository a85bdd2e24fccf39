//! The `networking.k8s.io` group: how traffic gets in, and which traffic is allowed.

pub(crate) mod address;
pub(crate) mod ingress;
pub(crate) mod network_policy;
