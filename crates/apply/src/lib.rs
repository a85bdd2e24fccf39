//! Objects on a cluster: what to write for one object and for a set of them, what to record, what to
//! remove.
//!
//! A controller that delivers objects (works, applications) says what it wants as a [`Target`]:
//! a [`Manifest`], a [`Strategy`], what happens to changes of others ([`Drift`]) and by what the object
//! is known to be its own ([`Ownership`]). [`plan()`] decides the next [`Step`], given what is there;
//! a [`Pass`](pass::Pass) does so for a whole set, with its [`Record`](record::Record).
//!
//! | module | decides |
//! |---|---|
//! | [`manifest`] | what an object is, and in which order objects are applied |
//! | [`target`] | how one object is treated |
//! | [`mod@plan`] | what to write, given what is there |
//! | [`compliance`] | whether an object has what it must have, or what it must not |
//! | [`three_way`] | the part of `plan` that is useful on its own |
//! | [`fields`] | where fields are that users name by paths |
//! | [`mod@diff`] | what a write would change |
//! | [`executor`] | in whose name objects are applied, and what has to be asked for that |
//! | [`ownership`], [`mod@removal`] | whom an object belongs to, and what becomes of it |
//! | [`repairs`] | when an object is repaired that somebody keeps changing |
//! | [`record`], [`pass`] | what a set of objects has on the cluster, and what to do next for all of it |
//!
//! Plain values go in, decisions come out. Nothing here reads a clock, a file or the network;
//! expressions of users run under a budget.
//!
//! ```
//! use bellwether_apply::{Drift, Live, Manifest, Ownership, Step, Strategy, Target, plan};
//! use serde_json::json;
//!
//! let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
//!     "metadata": {"name": "m", "namespace": "n"}, "data": {"k": "v"}});
//! let manifest = Manifest::read(0, &object)?;
//! let target = Target {
//!     manifest: &manifest,
//!     strategy: &Strategy::Update,
//!     drift: Drift::Undo,
//!     ownership: Ownership::None,
//!     baseline: None,
//!     applied_before: false,
//! };
//! assert_eq!(plan(&target, Live::Absent)?, Step::Create(object.clone()));
//! assert_eq!(plan(&target, Live::Present(&object))?, Step::Leave);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tables are written in place")
)]

mod baseline;
pub mod compliance;
pub mod diff;
pub mod executor;
pub mod fields;
mod jq;
mod live;
pub mod manifest;
mod metadata;
mod owned_fields;
pub mod ownership;
pub mod pass;
pub mod plan;
pub mod record;
pub mod removal;
pub mod repairs;
mod retry;
mod server_side;
pub mod target;
pub mod three_way;
mod update;

pub use baseline::Baseline;
pub use diff::{Difference, diff};
pub use live::LiveState;
pub use manifest::{Manifest, ObjectId, ResourceType};
pub use ownership::{Owner, Ownership, SharedList};
pub use plan::{ApplyError, Step, is_repair, plan, remember};
pub use removal::{Removal, removal};
pub use retry::Retry;
pub use target::{Drift, IgnoreCondition, IgnoredFields, Live, ServerSide, Strategy, Target};
