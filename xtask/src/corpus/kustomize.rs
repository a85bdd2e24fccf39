//! Directories and what `kustomize build` prints of them.

use bellwether_json::yaml::from_yaml;
use serde_json::Value;

use super::lines::{Corpus, answered};

pub(crate) const CORPUS: Corpus = Corpus {
    package: "bellwether-kustomize",
    probe: "kustomize-probe",
    judge,
    gates: &[(1, 100.0), (2, 95.0)],
};

/// Documents have to be equal, in order.
fn judge(case: &Value, answer: &Value) -> Result<(), String> {
    let Some((expected, text)) = answered(case, answer, "yaml")? else {
        return Ok(());
    };
    if expected == text || from_yaml(expected).ok() == from_yaml(text).ok() {
        return Ok(());
    }
    Err(format!("got\n{text}\nwant\n{expected}"))
}
