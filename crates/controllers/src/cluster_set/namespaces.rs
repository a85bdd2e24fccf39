//! Which namespaces are written down for a cluster.

use std::collections::BTreeSet;

use bellwether_api::cluster::ClusterSetManagedNamespace;

/// Whether exactly those are written that are wanted: sets and names, in order.
pub(super) fn are_as_wanted(
    written: &[ClusterSetManagedNamespace],
    wanted: &BTreeSet<(String, String)>,
) -> bool {
    let written = written.iter().map(|it| (&it.cluster_set, &it.name));
    written.eq(wanted.iter().map(|(set, name)| (set, name)))
}

/// What to write: those that stay keep what their agent said about them.
pub(super) fn of(
    written: &[ClusterSetManagedNamespace],
    wanted: &BTreeSet<(String, String)>,
) -> Vec<ClusterSetManagedNamespace> {
    let entry = |(set, name): &(String, String)| {
        let known = written
            .iter()
            .find(|it| it.cluster_set == *set && it.name == *name);
        known
            .cloned()
            .unwrap_or_else(|| ClusterSetManagedNamespace {
                name: name.clone(),
                cluster_set: set.clone(),
                ..ClusterSetManagedNamespace::default()
            })
    };
    wanted.iter().map(entry).collect()
}
