//! JSON lines for scripts: a directory in, its build out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Options, Tree, build};

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(default)]
    id: Value,
    files: BTreeMap<String, String>,
    #[serde(default)]
    root: String,
}

/// Answers `{"id", "files", "root"}` with `{"id", "yaml"}` or `{"id", "error"}`, and `warnings` if
/// there are any.
pub fn answer(line: &str) -> String {
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": format!("unreadable case: {error}")}).to_string(),
    };
    let tree: Tree = case.files.into_iter().collect();
    let mut answer = match build(&tree, &case.root, Options::default()) {
        Ok(built) => {
            let mut answer = json!({"yaml": built.to_yaml()});
            if !built.warnings.is_empty() {
                answer["warnings"] = json!(built.warnings);
            }
            answer
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    answer["id"] = case.id;
    answer.to_string()
}
