//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod admission;
mod adopt;
mod application;
mod apps;
mod backup;
mod cases;
mod cli;
mod clusters;
mod examples;
mod fleet;
mod git_cases;
mod install;
mod leadership;
mod monitoring;
mod policies;
mod pressure;
mod real;
mod replicas;
mod rights_used;
mod site;
mod templates;
mod upgrade;
mod wire;
mod workflows;
