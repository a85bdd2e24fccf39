//! Who an agent is on the hub, and what its roles and bindings there are called.

use super::names::registration::{
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
