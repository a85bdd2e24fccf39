//! Templates, each in a chart of its own, and what Helm's engine makes of them.

use bellwether_go::regexp::Regex;
use serde_json::Value;

use super::lines::Corpus;

pub(crate) const CORPUS: Corpus = Corpus {
    package: "bellwether-helm",
    probe: "gotemplate-probe",
    judge,
    gates: &[(1, 100.0), (2, 98.0), (3, 90.0)],
};

/// Messages of `fail` and `required` have to be equal; for others it is enough that there is one.
const EXACT: &str = "execution error at";

fn judge(case: &Value, answer: &Value) -> Result<(), String> {
    let expected = &case["expect"];
    let wrong = || Err(format!("got {answer}\nwant {expected}"));
    if let Some(error) = expected["error"].as_str() {
        let Some(found) = answer["error"].as_str() else {
            return wrong();
        };
        if error.starts_with(EXACT) && error != found {
            return wrong();
        }
        return Ok(());
    }
    let Some(text) = answer["text"].as_str() else {
        return wrong();
    };
    let is_right = match expected["match"].as_str() {
        Some(pattern) => Regex::new(pattern)?.is_match(text),
        None => expected["text"].as_str() == Some(text),
    };
    if is_right { Ok(()) } else { wrong() }
}
