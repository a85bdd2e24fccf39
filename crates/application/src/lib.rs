//! Applications: what their components, traits and policies are rendered to, and how they fare.
//!
//! | stage | module | result |
//! |---|---|---|
//! | definitions | [`definition`], [`file`](mod@file), [`catalog`] | templates, compiled once for each revision of a definition |
//! | application | [`appfile`] | components with their definitions, policies, and the steps that deliver them |
//! | placement | [`placement`], [`overrides`] | which components go where, and what changes there |
//! | rendering | [`render`], [`label`] | objects, with their labels |
//! | delivery | [`progress`], [`dispatch`], [`member`], [`tracker`], [`resource_policy`], [`revision`] | which steps can be taken, what happens to each object, what is recorded |
//! | state | [`health`] | how components fare |
//!
//! [`deliver`] walks through all of it as a workflow without waiting would do, which is what
//! `bellwether render` shows. Nothing here reads or writes anything: what has to be looked up
//! is handed in by [`catalog::Catalog`] and [`world::World`].

pub mod admission;
pub mod appfile;
pub mod builtin;
pub mod catalog;
pub mod context;
pub mod definition;
pub mod deliver;
pub mod dispatch;
pub mod document;
pub mod error;
pub mod file;
pub mod health;
pub mod label;
pub mod member;
pub mod overrides;
pub mod path;
pub mod placement;
pub mod probe;
pub mod progress;
pub mod referred;
pub mod render;
pub mod resource_policy;
pub mod revision;
pub mod terraform;
pub mod tracker;
pub mod world;

pub use error::{Class, RenderError, Stage};
