//! Who asks, and whether they may.
//!
//! Authentication turns a certificate or a token into an [`Identity`]; authorization asks the
//! cluster's role bindings on every request, whether it came over TLS or from this process.

mod authorizer;
mod bearer;
mod bootstrap;
mod bootstrap_token;
mod escalation;
mod identity;
mod issuers;
mod rbac;
mod reconcile;
mod review;
mod rule;
mod service_account;
mod token;

pub(crate) use authorizer::Authorizer;
pub(crate) use bearer::{api_audiences, authenticate_token};
pub(crate) use bellwether_api::admission::Attributes;
pub(crate) use bootstrap::bootstrap_objects;
pub use bootstrap_token::BootstrapToken;
pub(crate) use bootstrap_token::{Contents as BootstrapSecret, PREFIX as BOOTSTRAP_PREFIX};
pub(crate) use escalation::{is_all_powerful, refusal};
pub use identity::Identity;
pub(crate) use identity::{AUTHENTICATED, CREDENTIAL_ID, MASTERS};
pub(crate) use issuers::Issuers;
pub(crate) use rbac::{RoleRef, is_master};
pub(crate) use reconcile::complete;
pub(crate) use review::{check as check_review, complete as complete_review, review};
pub(crate) use rule::PolicyRule;
pub(crate) use service_account::{groups as account_groups, issuer, issuing_cluster, user_name};
pub use token::TokenKey;
pub(crate) use token::{Claims, Holder, Reference};
