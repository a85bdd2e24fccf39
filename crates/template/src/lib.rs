//! Go's `text/template`, under a budget.
//!
//! Templates are parsed into a [`Set`] once and rendered often. They see [`Value`]s with Go's kinds
//! and types, call functions of a table that the caller makes, and report errors in Go's words with
//! Go's positions. What a template wants to know about the world is asked for
//! ([`Rendered::Needs`]) and never fetched: the caller fetches it and renders again.
//!
//! ```
//! use bellwether_go::value::Value;
//! use bellwether_template::{Budget, Functions, NOWHERE, Options, Rendered, Set};
//!
//! let mut set = Set::new(Options::new(Functions::builtin()));
//! set.add("greeting", "Hello {{ .name }}!{{ range $i, $x := .list }} {{ $i }}={{ $x }}{{ end }}")?;
//! let dot = Value::map([
//!     ("name", Value::from("fleet")),
//!     ("list", Value::list(vec![Value::int(7), Value::from(0.5)])),
//! ]);
//! let rendered = set.render("greeting", &dot, &NOWHERE, &mut Budget::default())?;
//! assert_eq!(rendered, Rendered::Text(b"Hello fleet! 0=7 1=0.5".to_vec()));
//! # Ok::<(), bellwether_template::TemplateError>(())
//! ```
//!
//! # Cost
//!
//! Every node, every element that a function visits and every byte that is made is counted against
//! the [`Budget`]. A template that calls itself, or nests loops, ends with an error of
//! [`Phase::Budget`].

mod ast;
mod budget;
mod builtin;
mod call;
mod error;
mod execute;
mod facts;
mod function;
mod lex;
mod parse;
mod set;
pub mod sprig;
mod stack;
#[cfg(test)]
mod tests;
pub mod toml;

pub use ast::Location;
pub use bellwether_go::value::{self, Value};
pub use budget::Budget;
pub use call::{Call, Failure};
pub use error::{Phase, TemplateError};
pub use facts::{Facts, NOWHERE, NoFacts, Query, World, guessable_bytes};
pub use function::{Body, Entry, Function, Functions, function, variadic};
pub use set::{MissingKey, Options, Rendered, Session, Set};
