//! Workflows: what happens next, decided from a log of what happened.
//!
//! A workflow is a log ([`event`]). What is true of it ([`state`]), its status and its context
//! ([`project`]) are made from the log. A [`Pass`] says what is to be recorded and carried out next; the shell around it
//! does that and hands results in. Nothing here reads a clock or does I/O.
//!
//! | module | what it is |
//! |---|---|
//! | [`admission`] | which workflows are refused when they are written |
//! | [`spec`] | a workflow as it is carried out, and what is wrong with it |
//! | [`definition`], [`packages`], [`builtin`] | templates of steps, what they import, those that are built in |
//! | [`session`] | one step: its template, and the actions that are found in it |
//! | [`action`] | which actions there are, and what repeating them does |
//! | [`config`] | configurations, and their templates |
//! | [`condition`], [`path`], [`duration`] | the `if` of a step, paths into values, durations |
//! | [`pass`] | one pass over a workflow |
//! | [`secret`] | what Secrets hold, kept out of messages |
//! | [`backoff`] | when to look again |
//! | [`event`], [`state`], [`project`] | the log, what is true after it, what others see |
//! | [`operation`], [`edit`], [`token`] | what users do: on the status, as events, and with a token |

pub mod action;
pub mod admission;
pub mod backoff;
pub mod builtin;
pub mod condition;
pub mod config;
pub mod definition;
pub mod duration;
pub mod edit;
pub mod event;
mod identity;
pub mod merge;
pub mod operation;
pub mod packages;
pub mod pass;
pub mod path;
pub mod project;
pub mod secret;
pub mod session;
pub mod spec;
pub mod state;
pub mod token;
mod unify;

pub use definition::Definition;
pub use event::{Entry, Event};
pub use pass::{Done, Pass, Plan, Request, Settings, Settled, Woken};
pub use spec::Spec;
pub use state::State;
