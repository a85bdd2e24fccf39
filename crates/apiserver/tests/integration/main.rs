//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod admission_policies;
mod admission_subresources;
mod attacks;
mod audit;
mod bodies;
mod certificates;
mod changes;
mod common;
mod contract;
mod contract_admission;
mod contract_large;
mod contract_objects;
mod controller;
mod definitions;
mod growth;
mod identity;
mod in_place;
mod objects;
mod pods;
mod reading;
mod tokens;
mod webhooks;
