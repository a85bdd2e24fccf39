//! Charts and what `helm template` prints of them.

use bellwether_json::yaml::from_yaml;
use serde_json::Value;

use super::lines::{Corpus, answered};

pub(crate) const CORPUS: Corpus = Corpus {
    package: "bellwether-helm",
    probe: "chart-probe",
    judge,
    gates: &[(1, 100.0), (2, 97.0)],
};

/// Documents have to be equal, in order, with the templates that they come from; so do hooks.
fn judge(case: &Value, answer: &Value) -> Result<(), String> {
    let Some((expected, text)) = answered(case, answer, "manifest")? else {
        return Ok(());
    };
    if expected != text && documents(expected) != documents(text) {
        return Err(format!("got\n{text}\nwant\n{expected}"));
    }
    if case["expect"]["hooks"] != answer["hooks"] {
        return Err(format!(
            "got {}\nwant {}",
            answer["hooks"], case["expect"]["hooks"]
        ));
    }
    Ok(())
}

/// Documents that are not empty, with their sources.
fn documents(text: &str) -> Vec<(Option<&str>, Option<Vec<Value>>)> {
    let text = text.strip_prefix("---").unwrap_or(text);
    text.split("\n---")
        .map(|document| {
            let mut lines = document.lines();
            let source = lines.find_map(|line| line.strip_prefix("# Source: "));
            (source, from_yaml(document).ok())
        })
        .filter(|(_, values)| values.as_ref().is_none_or(|values| !values.is_empty()))
        .collect()
}
