//! Who an agent is on the hub.

use bellwether_api::cluster::names::registration::{
    CLUSTER_ROLE_PREFIX, REGISTRATION_SUFFIX, USER_PREFIX, WORK_SUFFIX,
};

/// The user that the agent of a cluster is.
pub fn user(cluster: &str, agent: &str) -> String {
    format!("{USER_PREFIX}{cluster}:{agent}")
}

/// The group that all agents of a cluster are in.
pub fn group(cluster: &str) -> String {
    format!("{USER_PREFIX}{cluster}")
}

/// The ClusterRole of a cluster, and its binding.
pub fn cluster_role(cluster: &str) -> String {
    format!("{CLUSTER_ROLE_PREFIX}{cluster}")
}

/// The binding in the namespace of a cluster for the agent's own sake.
pub fn registration_binding(cluster: &str) -> String {
    format!("{CLUSTER_ROLE_PREFIX}{cluster}{REGISTRATION_SUFFIX}")
}

/// The binding in the namespace of a cluster for works.
pub fn work_binding(cluster: &str) -> String {
    format!("{CLUSTER_ROLE_PREFIX}{cluster}{WORK_SUFFIX}")
}

/// How many certificate requests for renewal a cluster may have at a time. Requests are removed an
/// hour after they have been answered, and no certificate is renewed more often than this allows.
const RENEWALS: usize = 10;

/// The names of a cluster's certificate requests for renewal. They are fixed, so that the right to
/// read them is no right to read those of others.
pub fn renewals(cluster: &str) -> impl Iterator<Item = String> {
    (0..RENEWALS).map(move |number| format!("{cluster}-renewal-{number}"))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn names_are_those_of_the_interface() {
        assert_eq!(user("c1", "a"), "system:open-cluster-management:c1:a");
        assert_eq!(group("c1"), "system:open-cluster-management:c1");
        let work = "open-cluster-management:managedcluster:c1:work";
        assert_eq!(work_binding("c1"), work);
    }
}
