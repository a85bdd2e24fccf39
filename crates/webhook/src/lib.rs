//! Admission of a real hub: a webhook server for the rules that an embedded API server calls itself.
//!
//! | module | for |
//! |---|---|
//! | [`answer`] | an AdmissionReview in, an AdmissionReview out: pure, asked again until all facts are known |
//! | [`facts`] | what rules ask about the hub, fetched with its client |
//! | [`certificate`] | the authority in a Secret, its rotation, the certificate of the server |
//! | [`configuration`] | the webhook configurations that the hub should have |
//! | [`server`] | the listener |
//! | [`keeper`] | keeps the Secret and the configurations in order |
//!
//! Every process of a hub serves; the one that leads keeps.

pub mod answer;
pub mod certificate;
pub mod configuration;
pub mod facts;
pub mod keeper;
pub mod server;

pub use configuration::Location;
pub use keeper::Keeper;
pub use server::{Options, WebhookServer};
