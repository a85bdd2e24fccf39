//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod backup;
mod directory;
mod kill;
mod model;
mod watch;
