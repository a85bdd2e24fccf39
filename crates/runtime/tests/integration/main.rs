//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod delivering;
mod feeding;
mod following;
mod leadership;
