//! CEL, the Common Expression Language, as Kubernetes speaks it.
//!
//! Declare variables in an [`Env`], compile expressions to [`Program`]s, evaluate them over
//! [`Vars`] under a [`Budget`]:
//!
//! ```
//! use bellwether_cel::{Budget, Env, Type, Vars};
//!
//! let env = Env::builder().variable("object", Type::Dyn).build();
//! let rule = env.compile("object.status.phase in ['Succeeded', 'Failed']").unwrap();
//! let pod = serde_json::json!({"status": {"phase": "Failed"}});
//! let value = rule.evaluate(&Vars::new().json("object", &pod), &mut Budget::kubernetes());
//! assert_eq!(value.unwrap().as_bool(), Some(true));
//! ```
//!
//! Texts of errors, results and costs follow cel-go 0.26 configured as in Kubernetes 1.35. JSON
//! is evaluated where it lies and never copied. Nothing here reads a clock, a file or the
//! network, and no expression can make evaluation exceed its budget or overflow the stack.
//!
//! Not supported: message literals (`Type{...}`), protocol buffers, and the authorizer library.

mod ast;
mod check;
mod cost;
mod declaration;
mod env;
mod error;
mod escaping;
mod eval;
mod lexer;
mod library;
mod parser;
mod plan;
mod program;
mod schema;
mod source;
mod time;
mod types;
mod value;
mod vars;

pub use bellwether_json::quantity::Quantity;
pub use cost::Budget;
pub use cost::estimate::CostEstimate;
pub use env::{Env, EnvBuilder};
pub use error::{CompileErrors, EvalError, Issue, Stage};
pub use escaping::{escape, unescape};
pub use library::authorization::{AccessCheck, AccessDecision, Authorization, Authorizer};
pub use library::cidr::Cidr;
pub use library::format::NamedFormat;
pub use library::semver::Semver;
pub use library::{Library, LibrarySet};
pub use program::Program;
pub use schema::{
    DeclType, ListDecl, ListType, MapDecl, ObjectDecl, Scalar, StringDecl, StringFormat,
};
pub use source::Location;
pub use time::{Duration, Timestamp};
pub use types::{AbstractType, ObjectType, Type};
pub use value::{Key, List, Map, Text, Value};
pub use vars::Vars;
