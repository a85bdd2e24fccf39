//! JSONPath in kubectl's dialect.
//!
//! A template is literal text with actions in braces: `{.metadata.name}`, `{.items[*].kind}`,
//! `{range .items[*]}{.name}{"\n"}{end}`. [`JsonPath::parse`] reads one, [`JsonPath::find`] gives
//! the values that each piece selects, [`JsonPath::render`] the text that kubectl would print.
//!
//! The dialect is that of client-go: util/jsonpath, including its limits (one comparison in a
//! filter, no arithmetic) and its messages; `testdata/` tells the whole story. Two things are
//! better here: results of `*` and `..` on objects come in key order rather than in random order,
//! and a budget bounds the work.
//!
//! ```
//! use bellwether_jsonpath::JsonPath;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), bellwether_jsonpath::Error> {
//! let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
//! let path = JsonPath::parse("{.status.conditions[?(@.type==\"Ready\")].status}")?;
//! assert_eq!(path.find(&object)?, [[&json!("True")]]);
//! assert_eq!(path.render(&object)?, "True");
//! # Ok(())
//! # }
//! ```

mod compare;
mod error;
mod find;
mod node;
mod parse;
mod path;
mod print;
mod quote;

use serde_json::Value;

pub use error::Error;
pub use path::{field_path, relaxed, validate_simple_path};
pub use print::print;

use find::Finder;
use node::Node;

/// Values that one evaluation may touch: enough for every value of the largest objects,
/// and stopped within milliseconds.
const BUDGET: usize = 1_000_000;

/// A parsed template. Cheap to evaluate many times.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    /// Pieces of text and actions, in order.
    nodes: Vec<Node>,
    allow_missing_keys: bool,
}

impl JsonPath {
    /// Reads a template.
    pub fn parse(template: &str) -> Result<Self, Error> {
        let nodes = parse::template(template)?;
        Ok(Self {
            nodes,
            allow_missing_keys: false,
        })
    }

    /// Reads a path in any of the forms that kubectl takes for columns and sort keys: with or
    /// without braces, with or without the leading dot.
    pub fn parse_relaxed(path: &str) -> Result<Self, Error> {
        Self::parse(&relaxed(path)?)
    }

    /// Whether a field that no input has is an empty result instead of an error. kubectl allows
    /// missing keys unless told otherwise.
    #[must_use]
    pub fn allow_missing_keys(mut self, allow: bool) -> Self {
        self.allow_missing_keys = allow;
        self
    }

    /// The values that each piece of the template selects. Literal text and numbers select
    /// themselves, which is why results borrow from the path as well.
    pub fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<Vec<&'a Value>>, Error> {
        Finder::new(self.allow_missing_keys, BUDGET).run(&self.nodes, value)
    }

    /// The text that kubectl prints for `-o jsonpath=`.
    pub fn render(&self, value: &Value) -> Result<String, Error> {
        let results = self.find(value)?;
        Ok(results.iter().map(|values| print(values)).collect())
    }
}
