//! Examples that can be played: a folder with a script, `script.yaml`, and the files that it applies.
//!
//! A script says what is done and what is promised ([`script`]). [`play`] starts a fleet for it that is thrown away
//! afterwards, does what the script says with a running commentary, and succeeds only if everything that was promised was
//! seen. The tests, the READMEs and `bellwether examples run` share the scripts.
//!
//! | module | what it is |
//! |---|---|
//! | [`library`] | the examples in the binary |
//! | [`script`] | what is done and what is promised, and what is wrong with a script |
//! | [`judge`] | expressions about objects and requests |
//! | `fleet` | a fleet in processes of its own, which can be killed |
//! | `repository` | repositories of git that a fleet pushes to and reads from |
//! | `server` | HTTP servers that answer as a script says, and count who asked |
//! | `chaos` | kills at random moments |
//! | `observe` | watches objects: for promises that always hold, and for the commentary |
//! | [`player`] | does what a script says |

mod chaos;
mod fleet;
pub mod judge;
pub mod library;
mod observe;
pub mod player;
mod repository;
pub mod script;
mod server;

pub use chaos::Chaos;
pub use library::{EXAMPLES, Example};
pub use player::{PlayError, Settings, play};
pub use script::{Script, ScriptError};
