//! CUE: parse, compile once, evaluate fast, never crash.
//!
//! CUE is a language of constraints: types, values and defaults are one thing, and combining two
//! declarations of a field means that both hold. This crate evaluates it without I/O, without a
//! clock, and under a [budget](host::Budget): no source can panic, overflow the stack, or run on.
//!
//! ```
//! use bellwether_cue::builtins::parse_json;
//! use bellwether_cue::host::{Budget, Template};
//!
//! // Compile once; the template can be shared between threads.
//! let template = Template::compile(
//!     r#"
//!     parameter: {image: string, replicas: *1 | int, ports?: [...int]}
//!     output: {
//!         kind: "Deployment"
//!         spec: {
//!             replicas: parameter.replicas
//!             image:    parameter.image
//!             if parameter.ports != _|_ {
//!                 ports: [for p in parameter.ports {name: "port-\(p)", containerPort: p}]
//!             }
//!         }
//!     }
//!     "#,
//! )?;
//!
//! // Evaluate often: fill in data, check, export.
//! let mut evaluation = template.evaluate(Budget::default());
//! let parameter = parse_json(r#"{"image": "nginx", "ports": [80]}"#).expect("it is JSON");
//! evaluation.fill(&["parameter"], parameter);
//! let root = evaluation.root();
//! assert!(evaluation.validate(root).is_empty());
//! let spec = evaluation.lookup_path(root, &["output", "spec"]).expect("declared");
//! assert_eq!(
//!     evaluation.json(spec),
//!     Ok(r#"{"replicas":1,"image":"nginx","ports":[{"name":"port-80","containerPort":80}]}"#.to_owned()),
//! );
//!
//! // Data that does not fit is a list of problems, each with its path and the places involved.
//! let mut evaluation = template.evaluate(Budget::default());
//! evaluation.fill(&["parameter", "replicas"], parse_json(r#""three""#).expect("it is JSON"));
//! let root = evaluation.root();
//! let problems = evaluation.validate(root);
//! assert_eq!(problems[0].path, ["parameter", "replicas"]);
//! # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
//! ```
//!
//! # The way of a source
//!
//! | stage | module | result |
//! |---|---|---|
//! | text | [`token`], `lexer`, [`parser`] | a syntax tree ([`ast`]) with comments and positions, and all syntax problems |
//! | tree | [`compile`] | a [`Program`](ir::Program): names resolved, labels interned, immutable |
//! | program | `eval` | an arena of nodes, filled on demand |
//! | nodes | [`host`] | lookups, problems, JSON, or CUE again |
//!
//! Beside the way stand [`format`](mod@format) (source to source), [`patch`] (traits that change what a
//! component made), [`bridge`] (values to and from `serde_json`), [`excerpt`] (problems for people), [`cli`] (the commands of the `cue` tool on texts),
//! and [`probe`] with [`score`] (conformance).

pub mod ast;
pub mod bridge;
pub mod builtins;
pub mod cli;
pub mod compile;
pub mod diagnostic;
mod eval;
pub mod excerpt;
pub mod format;
pub mod host;
pub mod ir;
pub mod label;
mod lexer;
pub mod number;
pub mod parser;
pub mod patch;
pub mod probe;
mod quick;
pub mod score;
pub mod token;
mod tree;
pub mod value;
