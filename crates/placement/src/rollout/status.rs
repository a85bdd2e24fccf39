//! How far clusters are, and the groups they are in.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How far a cluster is with the version being rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It has not started.
    ToApply,
    /// It is on its way.
    Progressing,
    /// It arrived, and may have to soak.
    Succeeded,
    /// It failed, and may recover until its deadline.
    Failed,
    /// It did not arrive in time.
    TimeOut,
    /// It is passed over.
    Skip,
}

impl Status {
    /// Whether it counts against the tolerated failures.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimeOut)
    }
}

/// Which decision group: its name, which may be empty or shared, and its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The name, often empty.
    pub name: Arc<str>,
    /// The place in the order of groups.
    pub index: i64,
}

impl fmt::Display for GroupKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(formatter, "group {}", self.index)
        } else {
            write!(formatter, "group {}", self.name)
        }
    }
}

/// A decision group and its clusters, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Which one.
    pub key: GroupKey,
    /// Its clusters.
    pub clusters: Vec<Arc<str>>,
}

impl Group {
    /// A group of these clusters.
    pub fn new<N: Into<Arc<str>>>(
        name: &str,
        index: i64,
        clusters: impl IntoIterator<Item = N>,
    ) -> Self {
        let name = name.into();
        Self {
            key: GroupKey { name, index },
            clusters: clusters.into_iter().map(Into::into).collect(),
        }
    }
}

/// How far one cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Which cluster.
    pub cluster: Arc<str>,
    /// The group it is, or was, in.
    pub group: GroupKey,
    /// How far it is.
    pub status: Status,
    /// Since when, if that is known; otherwise it counts as since now.
    pub last_transition: Option<Timestamp>,
    /// When to look again, in answers: the end of the soak, or the deadline.
    pub recheck: Option<Timestamp>,
}

impl ClusterStatus {
    /// A cluster that has been in `status` since `last_transition`.
    pub fn new(
        cluster: impl Into<Arc<str>>,
        group: GroupKey,
        status: Status,
        last_transition: Option<Timestamp>,
    ) -> Self {
        Self {
            cluster: cluster.into(),
            group,
            status,
            last_transition,
            recheck: None,
        }
    }
}
