//! Applications: what their components, traits and policies are rendered to, and how they fare.
//!
//! | stage | module | result |
//! |---|---|---|
//! | definitions | [`definition`], [`file`](mod@file), [`attributes`], [`catalog`], [`definition_revision`] | templates, compiled once for each revision of a definition |
//! | changes | [`scoped`] | what policies make of the application before it is rendered |
//! | application | [`appfile`], [`default_steps`](mod@default_steps), [`environment`] | components with their definitions, policies, and the steps that deliver them |
//! | placement | [`placement`], [`overrides`] | which components go where, and what changes there |
//! | rendering | [`render`], [`chart`], [`label`] | objects, with their labels |
//! | outside | [`outside`] | charts, manifests and answers that rendering asks for |
//! | delivery | [`steps`], [`dispatch`], [`member`], [`tracker`], [`resource_policy`], [`revision`] | the steps of the workflow, what happens to each object, what is recorded |
//! | two revisions | [`resources`], [`blue_green`] | how replicas and requests move from one to the other |
//! | many clusters | [`distribution`] | which cluster gets how many replicas |
//! | state | [`health`] | how components fare |
//! | files | [`files`](mod@files) | what an application is rendered to, as files of a repository |
//! | templates | [`pre_render`] | Applications that come from a template: what is written to them, and when to stop |
//! | writes | [`admission`] | which applications and definitions are refused |
//! | before Applications | [`configuration`] | what ApplicationConfigurations become, and what is applied once |
//!
//! [`deliver`] walks through all of it as a workflow without waiting would do, which is what
//! `bellwether render` shows. Nothing here reads or writes anything: what has to be looked up
//! is handed in by [`catalog::Catalog`] and [`world::World`].

pub mod admission;
pub mod appfile;
pub mod attributes;
pub mod blue_green;
pub mod builtin;
pub mod catalog;
pub mod chart;
pub mod configuration;
pub mod context;
pub mod decode;
pub mod default_steps;
pub mod definition;
pub mod definition_revision;
pub mod deliver;
pub mod dispatch;
pub mod distribution;
pub mod document;
pub mod environment;
pub mod error;
pub mod file;
pub mod files;
pub mod garbage;
pub mod health;
pub mod label;
pub mod member;
pub mod outside;
pub mod overrides;
pub mod path;
pub mod placement;
pub mod pre_render;
pub mod preview;
pub mod probe;
pub mod referred;
pub mod render;
pub mod resource_policy;
pub mod resources;
pub mod revision;
pub mod scoped;
pub mod steps;
pub mod terraform;
pub mod tracker;
pub mod world;

pub use error::{Class, RenderError, Stage};
