//! Definitions of the records that agents keep on their members, as text.
//!
//! To make a definition of a type takes a generator of schemas. It would be more than a megabyte of the memory of every agent, which needs
//! nothing but these two. `BELLWETHER_UPDATE_RECORDS=1 cargo test -p bellwether-api records` writes them; without it the test compares.

use serde_json::Value;

/// Returns the definition of AppliedManifestWork.
pub fn applied_manifest_work() -> Value {
    parsed(include_str!("records/applied_manifest_work.json"))
}

/// Returns the definition of AppliedWork.
pub fn applied_work() -> Value {
    parsed(include_str!("records/applied_work.json"))
}

/// A test makes sure that the texts can be parsed.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{definition, multicluster, work};

    #[expect(clippy::disallowed_methods, reason = "a switch of a test")]
    fn check(name: &str, expected: &Value) {
        let text = format!("{expected}\n");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/records")
            .join(name);
        if std::env::var("BELLWETHER_UPDATE_RECORDS").is_ok() {
            std::fs::write(&path, &text).expect("a file");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is out of date: run BELLWETHER_UPDATE_RECORDS=1 cargo test -p bellwether-api records",
            path.display()
        );
    }

    #[test]
    fn texts_are_the_definitions_of_the_types() {
        check(
            "applied_manifest_work.json",
            &definition::<work::AppliedManifestWork>(),
        );
        check(
            "applied_work.json",
            &definition::<multicluster::AppliedWork>(),
        );
    }
}
