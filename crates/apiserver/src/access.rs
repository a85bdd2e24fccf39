//! Who asks, and whether they may.
//!
//! Authentication turns a certificate or a token into an [`Identity`]; authorization asks the
//! cluster's role bindings on every request, whether it came over TLS or from this process.

mod authorizer;
mod bootstrap;
mod identity;
mod rbac;
mod review;

pub(crate) use authorizer::Authorizer;
pub(crate) use bootstrap::bootstrap_objects;
pub use identity::Identity;
pub(crate) use rbac::Attributes;
pub(crate) use review::review;
