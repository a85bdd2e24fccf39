//! Problems for people: where, in the source, with the lines that matter and a hint.
//!
//! [`render`] turns diagnostics into text. Each problem shows its message, then the lines of source it
//! is about with the offending places marked; the conjuncts that conflict are all shown, in the
//! order of the source. [`brief`] is the reference's format, one line per place, for tools.

mod hint;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Location};

pub use self::hint::closest;

/// The sources diagnostics refer to, by file name.
pub type Sources<'a> = &'a [(&'a str, &'a str)];

/// More problems than this are only counted.
const PROBLEM_LIMIT: usize = 20;

/// More places than this of one problem are only counted.
const PLACE_LIMIT: usize = 6;

/// The reference's format: `path: message:` and one indented line per place.
pub fn brief(problems: &[Diagnostic]) -> String {
    let mut output = String::new();
    for problem in problems {
        output.push_str(&problem.to_string());
        let places = places(problem);
        if !places.is_empty() {
            output.push(':');
        }
        output.push('\n');
        for place in places {
            let _ = writeln!(output, "    ./{place}");
        }
    }
    output
}

/// Problems with the source they are about.
pub fn render(problems: &[Diagnostic], sources: Sources<'_>) -> String {
    let mut output = String::new();
    let mut reasons = 0_usize;
    for (position, problem) in problems.iter().take(PROBLEM_LIMIT).enumerate() {
        if position > 0 {
            output.push('\n');
        }
        let kind = match (reasons > 0, problem.code.is_temporary()) {
            (true, _) => "because",
            (false, true) => "incomplete",
            (false, false) => "error",
        };
        reasons = reasons_announced(problem).unwrap_or_else(|| reasons.saturating_sub(1));
        render_one(&mut output, kind, problem, sources);
    }
    if problems.len() > PROBLEM_LIMIT {
        let _ = writeln!(output, "\n… and {} more", problems.len() - PROBLEM_LIMIT);
    }
    output
}

/// The places of a problem in source order, each once.
fn places(problem: &Diagnostic) -> Vec<&Location> {
    let mut places: Vec<&Location> = problem.location.iter().chain(&problem.related).collect();
    places.sort();
    places.dedup();
    places
}

/// How many of the problems that follow are the reasons for this one: why each alternative of a
/// disjunction fails.
fn reasons_announced(problem: &Diagnostic) -> Option<usize> {
    let count = problem
        .message
        .strip_suffix(" errors in empty disjunction:")?;
    count.parse().ok()
}

fn render_one(output: &mut String, kind: &str, problem: &Diagnostic, sources: Sources<'_>) {
    let mut lines = problem.message.lines();
    let first = lines.next().unwrap_or("");
    if problem.path.is_empty() {
        let _ = writeln!(output, "{kind}: {first}");
    } else {
        let _ = writeln!(output, "{kind}: {}: {first}", problem.path_text());
    }
    for line in lines {
        let _ = writeln!(output, "  {line}");
    }
    let places = places(problem);
    let width = places
        .iter()
        .map(|place| place.at.line.to_string().len())
        .max()
        .unwrap_or(1);
    let mut previous: Option<&Location> = None;
    let on_same_line = |left: &&Location, right: &&Location| {
        left.file == right.file && left.at.line == right.at.line
    };
    let shown = &places[..places.len().min(PLACE_LIMIT)];
    for group in shown.chunk_by(on_same_line) {
        let place = group[0];
        let source = sources
            .iter()
            .find(|(name, _)| *name == &*place.file)
            .map(|(_, text)| *text);
        let Some(line) = source.and_then(|text| text.lines().nth(line_index(place))) else {
            let _ = writeln!(output, "{:width$}--> {place}", "");
            continue;
        };
        let same_file = previous.is_some_and(|previous| previous.file == place.file);
        if same_file {
            let near = previous.is_some_and(|previous| place.at.line <= previous.at.line + 1);
            if !near {
                let _ = writeln!(output, "{:width$} ⋮", "");
            }
        } else {
            let _ = writeln!(output, "{:width$}--> {place}", "");
        }
        render_line(output, group, line, width);
        previous = Some(place);
    }
    if places.len() > PLACE_LIMIT {
        let _ = writeln!(
            output,
            "{:width$} … and {} more places",
            "",
            places.len() - PLACE_LIMIT
        );
    }
    let own = hint::for_problem(problem, sources);
    if let Some(hint) = problem.hint.as_deref().map(str::to_owned).or(own) {
        let _ = writeln!(output, "{:width$} = hint: {hint}", "");
    }
}

fn line_index(place: &Location) -> usize {
    (place.at.line as usize).saturating_sub(1)
}

/// A source line with its number, and a mark under the token at each place.
fn render_line(output: &mut String, places: &[&Location], line: &str, width: usize) {
    // Tabs become one blank each, so that a mark stands below its token.
    let shown = line.replace('\t', " ");
    let number = places.first().map_or(0, |place| place.at.line);
    let _ = writeln!(output, "{number:>width$} | {}", shown.trim_end());
    let mut marks = String::new();
    let mut filled = 0;
    for place in places {
        let column = (place.at.column as usize).saturating_sub(1).min(line.len());
        let column = (0..=column)
            .rev()
            .find(|at| line.is_char_boundary(*at))
            .unwrap_or(0);
        let (before, rest) = line.split_at(column);
        let start = before.chars().count();
        let end = start + token_length(rest).max(1);
        if start >= filled {
            marks.push_str(&" ".repeat(start - filled));
        }
        marks.push_str(&"^".repeat(end.saturating_sub(start.max(filled))));
        filled = filled.max(end);
    }
    let _ = writeln!(output, "{:width$} | {marks}", "");
}

/// How many characters the token at the start of the text has.
fn token_length(text: &str) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else {
        return 1;
    };
    // A bound or a default is its operator and what follows.
    let operand = text.trim_start_matches(['<', '>', '=', '!', '~', '*', '-', '+']);
    if operand.len() < text.len() && !operand.is_empty() {
        let operand = operand.trim_start();
        let operator = text.chars().count() - operand.chars().count();
        return operator + token_length(operand);
    }
    if first == '"' || first == '\'' {
        let rest = characters
            .take_while(|character| *character != first)
            .count();
        return (rest + 2).min(text.trim_end().chars().count());
    }
    let word = |character: char| character.is_alphanumeric() || "_#$.".contains(character);
    if word(first) {
        return 1 + characters.take_while(|character| word(*character)).count();
    }
    1
}
