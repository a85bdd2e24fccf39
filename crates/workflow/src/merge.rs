//! Merging a patch in CUE into an object: comments of the patch steer how.

use bellwether_cue::host::{Budget, Template};
use bellwether_cue::patch::{self, Operand};
use serde_json::Value;

use crate::definition::describe;

/// Merges a patch, which is CUE, into an object.
pub fn apply(object: &Value, patch: &str) -> Result<Value, String> {
    let compile = |source: &str| Template::compile(source).map_err(|problems| describe(&problems));
    let mut base = compile(&object.to_string())?.evaluate(Budget::default());
    let mut change = compile(patch)?.evaluate(Budget::default());
    let (base_root, change_root) = (base.root(), change.root());
    let strategy = patch::strategy(&mut change, change_root);
    let base = Operand {
        evaluation: &mut base,
        value: base_root,
    };
    let change = Operand {
        evaluation: &mut change,
        value: change_root,
    };
    let mut merged = patch::apply(base, change, strategy, Budget::default())
        .map_err(|problem| problem.to_string())?;
    let root = merged.root();
    merged
        .export_json(root)
        .map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_adds_to_an_object() {
        let object = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
        let patch =
            "spec: {\n// +patchKey=name\ncontainers: [{name: \"a\", tty: true}]\nreplicas: 2}";
        assert_eq!(
            apply(&object, patch),
            Ok(
                json!({"spec": {"containers": [{"name": "a", "image": "x", "tty": true}], "replicas": 2}})
            )
        );
        assert!(apply(&json!({"a": 1}), "a: 2").is_err());
    }
}
