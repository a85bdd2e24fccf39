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
//! | `fleet` | a fleet in a process of its own, which can be killed |
//! | `server` | HTTP servers that answer as a script says, and count who asked |
//! | `observe` | watches objects: for promises that always hold, and for the commentary |
//! | [`player`] | does what a script says |

mod fleet;
pub mod judge;
pub mod library;
mod observe;
pub mod player;
pub mod script;
mod server;

pub use library::{EXAMPLES, Example};
pub use player::{Chaos, PlayError, Settings, play};
pub use script::{Script, ScriptError};
