//! Hints: what the author probably meant.

use std::collections::BTreeSet;

use super::Sources;
use crate::diagnostic::Diagnostic;

/// A hint for a problem that carries none of its own.
pub(super) fn for_problem(problem: &Diagnostic, sources: Sources<'_>) -> Option<String> {
    let message = problem.message.as_str();
    if let Some(name) = message.strip_prefix("undefined field: ") {
        return did_you_mean(name.trim_matches('"'), sources);
    }
    if let Some(rest) = message.strip_prefix("reference \"") {
        let name = rest.split('"').next().unwrap_or("");
        if let Some(path) = package_named(name) {
            return Some(format!("add `import \"{path}\"` at the top of the file"));
        }
        return did_you_mean(name, sources);
    }
    if message == "field not allowed" {
        let name = problem.path.last()?.trim_matches('"');
        return match did_you_mean(name, sources) {
            Some(hint) => Some(hint),
            None => Some("the struct is closed by a definition or close()".to_owned()),
        };
    }
    if let Some(rest) = message.strip_prefix("builtin package \"") {
        let name = rest.split('"').next().unwrap_or("");
        let paths: Vec<&str> = crate::builtins::paths().collect();
        let found = closest(name, paths)?;
        return Some(format!("did you mean \"{found}\"?"));
    }
    if message.starts_with("conflicting values")
        && message.contains("(mismatched types int and float)")
    {
        return Some("int and float never unify; use number to allow both".to_owned());
    }
    if let Some(rest) = message.strip_prefix("cannot call non-function ") {
        let (package, name) = rest.split(' ').next()?.split_once('.')?;
        let package = crate::builtins::package(package_named(package)?)?;
        let names = package.functions.iter().map(|function| function.name);
        return closest(name, names).map(|found| format!("did you mean {found:?}?"));
    }
    if message.starts_with("incomplete value") {
        return Some("give it a value, or a default with *".to_owned());
    }
    None
}

fn package_named(name: &str) -> Option<&'static str> {
    crate::builtins::paths().find(|path| path.rsplit('/').next() == Some(name))
}

/// A name that appears in the sources and is close to the one that was not found.
fn did_you_mean(name: &str, sources: Sources<'_>) -> Option<String> {
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for (_, text) in sources {
        words.extend(labels(text));
    }
    words.remove(name);
    closest(name, words).map(|found| format!("did you mean {found:?}?"))
}

/// Words that are followed by a colon, which is what labels look like.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let word = |character: char| character.is_alphanumeric() || "_#$-".contains(character);
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(move |line| {
            line.match_indices(':').filter_map(move |(position, _)| {
                let before = line[..position].trim_end_matches(['?', '!', '"']);
                let start = before.rfind(|c| !word(c)).map_or(0, |at| at + 1);
                let start = (start..=before.len()).find(|at| before.is_char_boundary(*at))?;
                let label = &before[start..];
                // What stands behind an interpolation is no label of its own.
                (!label.is_empty() && !label.starts_with('-')).then_some(label)
            })
        })
}

/// The name most like another one, if any is like it at all.
pub fn closest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        // Any letter is like any other.
        0..=1 => 0,
        2..=5 => 1,
        length => length / 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in names {
        if candidate == name {
            continue;
        }
        let distance = distance(name, candidate, limit);
        if let Some(distance) = distance
            && best.is_none_or(|(known, _)| distance < known)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits between two words, a swap of neighbours counting as one; `None` above the limit.
fn distance(left: &str, right: &str, limit: usize) -> Option<usize> {
    let (left, right): (Vec<char>, Vec<char>) = (
        left.chars().flat_map(char::to_lowercase).collect(),
        right.chars().flat_map(char::to_lowercase).collect(),
    );
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut cost = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    rows[left.len()]
        .get(right.len())
        .copied()
        .filter(|distance| *distance <= limit)
}
