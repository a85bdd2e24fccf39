//! The order of objects in the result.

use std::cmp::Ordering;

use serde::Deserialize;

use crate::error::{Problem, Result};
use crate::id::{Gvk, Id};
use crate::resource_list::ResourceList;

/// In which order objects are printed, unless the kustomization says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By kind: namespaces and definitions first, webhooks last.
    #[default]
    Legacy,
    /// As they were read.
    None,
}

/// `sortOptions` of a kustomization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SortOptions {
    order: String,
    legacy_sort_options: Option<LegacySortOptions>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct LegacySortOptions {
    order_first: Vec<String>,
    order_last: Vec<String>,
}

const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

const LAST: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Sorts as the kustomization says, or as the caller does.
pub(crate) fn sort(
    list: &mut ResourceList,
    options: Option<&SortOptions>,
    order: Order,
) -> Result<()> {
    let default = LegacySortOptions {
        order_first: FIRST.map(str::to_owned).to_vec(),
        order_last: LAST.map(str::to_owned).to_vec(),
    };
    let legacy = match options {
        None if order == Order::None => return Ok(()),
        None => &default,
        Some(options) => match (options.order.as_str(), &options.legacy_sort_options) {
            ("fifo", None) => return Ok(()),
            ("fifo", Some(_)) => {
                let message = "`legacySortOptions` needs `order: legacy`";
                return Err(Problem::new(message));
            }
            ("legacy", legacy) => legacy.as_ref().unwrap_or(&default),
            (other, _) => {
                let message = format!("`sortOptions.order` is {other:?}; use fifo or legacy");
                return Err(Problem::new(message));
            }
        },
    };
    list.resources
        .sort_by_cached_key(|resource| SortKey::new(&resource.id(), legacy));
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct SortKey {
    rank: i64,
    is_namespace: bool,
    kind: String,
    rest: String,
}

impl SortKey {
    fn new(id: &Id, options: &LegacySortOptions) -> Self {
        let position = |kinds: &[String]| {
            // Of a kind that is listed twice the last place counts.
            let found = kinds.iter().rposition(|kind| *kind == id.gvk.kind);
            found.and_then(|index| i64::try_from(index).ok())
        };
        let first = i64::try_from(options.order_first.len()).unwrap_or(i64::MAX);
        let rank = match (
            position(&options.order_last),
            position(&options.order_first),
        ) {
            (Some(index), _) => 1 + index,
            (None, Some(index)) => index - first,
            (None, None) => 0,
        };
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
        Self {
            rank,
            is_namespace: id.gvk.kind == "Namespace",
            kind: sortable(&id.gvk),
            rest: format!(
                "{}|{}|{}",
                id.gvk,
                or(&id.namespace, "~X"),
                or(&id.name, "~N")
            ),
        }
    }
}

fn sortable(gvk: &Gvk) -> String {
    let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
    format!(
        "{}_{}_{}",
        or(&gvk.group, "~G"),
        or(&gvk.version, "~V"),
        or(&gvk.kind, "~K")
    )
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let kinds = self.kind.cmp(&other.kind);
        // Namespaces of Kubernetes come before those of other groups.
        let kinds = if self.is_namespace && other.is_namespace {
            kinds.reverse()
        } else {
            kinds
        };
        let rank = self.rank.cmp(&other.rank);
        rank.then(kinds).then_with(|| self.rest.cmp(&other.rest))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
