//! Path expressions of jq, as far as they name fields: `.spec.replicas`, `.a["b"]`, `.a[0]`, `.a[]`,
//! `.a[]?`, `..`, `select(…)` with comparisons, pipes and commas.
//!
//! Everything else of jq, such as arithmetic, variables and definitions, is refused with a word.

use serde_json::Value;

use super::ignore::{Location, MAX_DEPTH, Place};

/// How many places an expression may go through.
const MAX_STEPS: usize = 100_000;
/// How deep parentheses may be nested.
const MAX_NESTING: usize = 64;

/// Where the fields are that an expression names and the object has.
pub(super) fn paths(expression: &str, object: &Value) -> Result<Vec<Location>, String> {
    let mut parser = Parser {
        rest: expression,
        nesting: 0,
    };
    let parsed = parser
        .whole()
        .map_err(|error| format!("failed to parse jq expression: {error}"))?;
    let mut steps = 0;
    let found = run(&parsed, object, vec![Vec::new()], &mut steps)
        .map_err(|error| format!("jq expression returned error: {error}"))?;
    if found.iter().any(Vec::is_empty) {
        return Err("jq expression did not return any data".to_owned());
    }
    let exists = |location: &Location| value_at(object, location).is_some();
    Ok(found.into_iter().filter(exists).collect())
}

/// A filter: gives places for each place.
#[derive(Debug)]
enum Filter {
    Identity,
    Recurse,
    Field(String),
    Index(i64),
    Iterate,
    Try(Box<Filter>),
    Pipe(Vec<Filter>),
    Comma(Vec<Filter>),
    Select(Box<Test>),
}

#[derive(Debug)]
enum Test {
    Or(Box<Test>, Box<Test>),
    And(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Compare(Operand, &'static str, Operand),
    Holds(Operand),
}

#[derive(Debug)]
enum Operand {
    Literal(Value),
    Path(Filter),
    /// A path, and a question about what is there.
    Call(Filter, &'static str, Value),
}

/// Questions with one argument that may end a path in a test.
const QUESTIONS: [&str; 5] = ["has", "startswith", "endswith", "contains", "test"];
/// Comparisons, longer ones first.
const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

struct Parser<'a> {
    rest: &'a str,
    nesting: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Filter, String> {
        let filter = self.pipe()?;
        self.skip();
        if self.rest.is_empty() {
            Ok(filter)
        } else {
            Err(format!("unexpected {:?}", self.rest))
        }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(format!("expected {token:?} at {:?}", self.rest))
        }
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(word);
        match rest.filter(|rest| !rest.starts_with(is_name)) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn pipe(&mut self) -> Result<Filter, String> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err("nested too deeply".to_owned());
        }
        let mut parts = vec![self.comma()?];
        while self.eat("|") {
            parts.push(self.comma()?);
        }
        self.nesting -= 1;
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Filter::Pipe(parts)
        })
    }

    fn comma(&mut self) -> Result<Filter, String> {
        let mut parts = vec![self.path()?];
        while self.eat(",") {
            parts.push(self.path()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Filter::Comma(parts)
        })
    }

    fn path(&mut self) -> Result<Filter, String> {
        let mut steps = vec![self.term()?];
        loop {
            if self.rest.starts_with('.') {
                self.rest = &self.rest[1..];
                if !self.rest.starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.rest.starts_with('[') {
                steps.push(self.bracket()?);
            } else if self.rest.starts_with('?') {
                self.rest = &self.rest[1..];
                let last = steps.pop().unwrap_or(Filter::Identity);
                steps.push(Filter::Try(Box::new(last)));
            } else {
                return Ok(Filter::Pipe(steps));
            }
        }
    }

    fn term(&mut self) -> Result<Filter, String> {
        self.skip();
        if self.eat("..") {
            return Ok(Filter::Recurse);
        }
        if self.eat("(") {
            let inner = self.pipe()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.word("select") {
            self.expect("(")?;
            let test = self.test()?;
            self.expect(")")?;
            return Ok(Filter::Select(Box::new(test)));
        }
        if !self.rest.starts_with('.') {
            return Err(format!("expected a path at {:?}", self.rest));
        }
        self.rest = &self.rest[1..];
        if self.rest.starts_with('"') || self.rest.starts_with(is_name_start) {
            return self.field();
        }
        Ok(Filter::Identity)
    }

    fn field(&mut self) -> Result<Filter, String> {
        if self.rest.starts_with('"') {
            return match self.literal()? {
                Value::String(name) => Ok(Filter::Field(name)),
                _ => Err("expected a name".to_owned()),
            };
        }
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if !name.starts_with(is_name_start) {
            return Err(format!("expected a name at {:?}", self.rest));
        }
        self.rest = rest;
        Ok(Filter::Field(name.to_owned()))
    }

    fn bracket(&mut self) -> Result<Filter, String> {
        self.expect("[")?;
        if self.eat("]") {
            return Ok(Filter::Iterate);
        }
        let filter = match self.literal()? {
            Value::String(name) => Filter::Field(name),
            Value::Number(number) => {
                Filter::Index(number.as_i64().ok_or("an index is a whole number")?)
            }
            other => return Err(format!("{other} is no index")),
        };
        self.expect("]")?;
        Ok(filter)
    }

    /// A text, a number, or one of the words of JSON.
    fn literal(&mut self) -> Result<Value, String> {
        self.skip();
        let end = if self.rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            values
                .next()
                .and_then(Result::ok)
                .map(|_| values.byte_offset())
        } else {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            Some(self.rest.find(|c| !is_plain(c)).unwrap_or(self.rest.len()))
        };
        let value = end.and_then(|end| {
            let (text, rest) = self.rest.split_at(end);
            let value = serde_json::from_str(text).ok()?;
            self.rest = rest;
            Some(value)
        });
        value.ok_or_else(|| format!("expected a value at {:?}", self.rest))
    }

    fn test(&mut self) -> Result<Test, String> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err("nested too deeply".to_owned());
        }
        let mut test = self.conjunction()?;
        while self.word("or") {
            test = Test::Or(Box::new(test), Box::new(self.conjunction()?));
        }
        self.nesting -= 1;
        Ok(test)
    }

    fn conjunction(&mut self) -> Result<Test, String> {
        let mut test = self.negation()?;
        while self.word("and") {
            test = Test::And(Box::new(test), Box::new(self.negation()?));
        }
        Ok(test)
    }

    fn negation(&mut self) -> Result<Test, String> {
        let mut test = self.comparison()?;
        while self.rest.trim_start().starts_with('|') {
            self.expect("|")?;
            if !self.word("not") {
                return Err(format!("expected not at {:?}", self.rest));
            }
            test = Test::Not(Box::new(test));
        }
        Ok(test)
    }

    fn comparison(&mut self) -> Result<Test, String> {
        if self.eat("(") {
            let test = self.test()?;
            self.expect(")")?;
            return Ok(test);
        }
        let left = self.operand()?;
        for comparison in COMPARISONS {
            if self.eat(comparison) {
                return Ok(Test::Compare(left, comparison, self.operand()?));
            }
        }
        Ok(Test::Holds(left))
    }

    fn operand(&mut self) -> Result<Operand, String> {
        self.skip();
        if let Some(call) = self.question(Filter::Identity)? {
            return Ok(call);
        }
        if !self.rest.starts_with('.') {
            return self.literal().map(Operand::Literal);
        }
        let path = self.path()?;
        let before = self.rest;
        if self.eat("|") {
            self.skip();
            if QUESTIONS.iter().any(|name| self.rest.starts_with(name)) {
                return match self.question(path)? {
                    Some(call) => Ok(call),
                    None => Err(format!("unexpected {:?}", self.rest)),
                };
            }
            self.rest = before;
        }
        Ok(Operand::Path(path))
    }

    fn question(&mut self, path: Filter) -> Result<Option<Operand>, String> {
        for name in QUESTIONS {
            if self.word(name) {
                if name == "test" {
                    return Err("test() is not supported: use startswith or contains".to_owned());
                }
                self.expect("(")?;
                let argument = self.literal()?;
                self.expect(")")?;
                return Ok(Some(Operand::Call(path, name, argument)));
            }
        }
        Ok(None)
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn value_at<'a>(object: &'a Value, location: &[Place]) -> Option<&'a Value> {
    location
        .iter()
        .try_fold(object, |value, place| match place {
            Place::Field(name) => value.get(name),
            Place::Index(index) => value.get(index),
        })
}

type Places = Vec<Location>;

fn run(
    filter: &Filter,
    object: &Value,
    places: Places,
    steps: &mut usize,
) -> Result<Places, String> {
    let mut found = Vec::new();
    match filter {
        Filter::Pipe(parts) => {
            let mut places = places;
            for part in parts {
                places = run(part, object, places, steps)?;
            }
            return Ok(places);
        }
        Filter::Identity => return Ok(places),
        _ => {}
    }
    for place in places {
        *steps += 1;
        if *steps > MAX_STEPS {
            return Err("too many places".to_owned());
        }
        found.extend(step(filter, object, place, steps)?);
    }
    Ok(found)
}

/// What one filter gives for one place.
fn step(
    filter: &Filter,
    object: &Value,
    place: Location,
    steps: &mut usize,
) -> Result<Places, String> {
    let null = Value::Null;
    let value = value_at(object, &place).unwrap_or(&null);
    let below = |next: Place| {
        let mut location = place.clone();
        location.push(next);
        location
    };
    Ok(match filter {
        Filter::Identity => vec![place],
        Filter::Pipe(_) => run(filter, object, vec![place], steps)?,
        Filter::Comma(parts) => {
            let mut found = Vec::new();
            for part in parts {
                found.extend(run(part, object, vec![place.clone()], steps)?);
            }
            found
        }
        Filter::Field(name) => match value {
            Value::Object(_) | Value::Null => vec![below(Place::Field(name.clone()))],
            other => return Err(format!("expected an object but got: {}", described(other))),
        },
        Filter::Index(index) => match value {
            Value::Array(items) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { index + length } else { *index };
                usize::try_from(index)
                    .map(|index| below(Place::Index(index)))
                    .into_iter()
                    .collect()
            }
            Value::Null => Vec::new(),
            other => return Err(format!("expected an array but got: {}", described(other))),
        },
        Filter::Iterate => match value {
            Value::Array(items) => (0..items.len())
                .map(|index| below(Place::Index(index)))
                .collect(),
            Value::Object(map) => map
                .keys()
                .map(|key| below(Place::Field(key.clone())))
                .collect(),
            other => return Err(format!("cannot iterate over: {}", described(other))),
        },
        Filter::Recurse => everything(value, &place, 0),
        Filter::Try(inner) => run(inner, object, vec![place], steps).unwrap_or_default(),
        Filter::Select(test) => {
            if holds(test, value, steps)? {
                vec![place]
            } else {
                Vec::new()
            }
        }
    })
}

fn everything(value: &Value, place: &Location, depth: usize) -> Places {
    let mut found = vec![place.clone()];
    if depth > MAX_DEPTH {
        return found;
    }
    let mut enter = |next: Place, value: &Value| {
        let mut location = place.clone();
        location.push(next);
        found.extend(everything(value, &location, depth + 1));
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| enter(Place::Field(key.clone()), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| enter(Place::Index(index), value)),
        _ => {}
    }
    found
}

fn described(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} ({value})")
}

fn holds(test: &Test, value: &Value, steps: &mut usize) -> Result<bool, String> {
    Ok(match test {
        Test::Or(one, other) => holds(one, value, steps)? || holds(other, value, steps)?,
        Test::And(one, other) => holds(one, value, steps)? && holds(other, value, steps)?,
        Test::Not(inner) => !holds(inner, value, steps)?,
        Test::Holds(operand) => !matches!(
            evaluate(operand, value, steps)?,
            Value::Null | Value::Bool(false)
        ),
        Test::Compare(left, comparison, right) => {
            let (left, right) = (
                evaluate(left, value, steps)?,
                evaluate(right, value, steps)?,
            );
            let is_equal = bellwether_json::equality::semantic_eq(&left, &right);
            match *comparison {
                "==" => is_equal,
                "!=" => !is_equal,
                "<=" => is_equal || is_less(&left, &right)?,
                ">=" => is_equal || is_less(&right, &left)?,
                "<" => is_less(&left, &right)?,
                _ => is_less(&right, &left)?,
            }
        }
    })
}

fn is_less(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.as_f64() < right.as_f64()),
        (Value::String(left), Value::String(right)) => Ok(left < right),
        _ => Err(format!(
            "cannot compare {} with {}",
            described(left),
            described(right)
        )),
    }
}

fn evaluate(operand: &Operand, value: &Value, steps: &mut usize) -> Result<Value, String> {
    let first = |filter: &Filter, steps: &mut usize| -> Result<Value, String> {
        let places = run(filter, value, vec![Vec::new()], steps)?;
        let found = places.first().and_then(|place| value_at(value, place));
        Ok(found.cloned().unwrap_or(Value::Null))
    };
    match operand {
        Operand::Literal(literal) => Ok(literal.clone()),
        Operand::Path(filter) => first(filter, steps),
        Operand::Call(filter, name, argument) => {
            let subject = first(filter, steps)?;
            let text = argument.as_str().unwrap_or_default();
            let answer = match (*name, &subject) {
                ("has", Value::Object(map)) => map.contains_key(text),
                ("startswith", Value::String(subject)) => subject.starts_with(text),
                ("endswith", Value::String(subject)) => subject.ends_with(text),
                ("contains", Value::String(subject)) => subject.contains(text),
                (name, other) => {
                    return Err(format!("{name} cannot be applied to: {}", described(other)));
                }
            };
            Ok(answer.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(location: &Location) -> String {
        location
            .iter()
            .fold(String::new(), |text, place| match place {
                Place::Field(name) => format!("{text}/{name}"),
                Place::Index(index) => format!("{text}/{index}"),
            })
    }

    #[track_caller]
    fn check(expression: &str, expected: Result<&[&str], &str>) {
        let object = json!({
            "spec": {"replicas": 1, "containers": [
                {"name": "app", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
                {"name": "side", "image": "s:1"},
            ]},
            "data": {"a.b": "c"},
        });
        let found =
            paths(expression, &object).map(|found| found.iter().map(shown).collect::<Vec<_>>());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{expression}"),
            (Err(error), Err(expected)) => assert_eq!(error, expected, "{expression}"),
            (found, expected) => panic!("{expression}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn fields_are_found() {
        check(".spec.replicas", Ok(&["/spec/replicas"]));
        check(".data[\"a.b\"]", Ok(&["/data/a.b"]));
        check(".data.\"a.b\"", Ok(&["/data/a.b"]));
        check(
            ".spec.containers[0].image",
            Ok(&["/spec/containers/0/image"]),
        );
        check(
            ".spec.containers[-1].image",
            Ok(&["/spec/containers/1/image"]),
        );
        check(
            ".spec.containers[].image",
            Ok(&["/spec/containers/0/image", "/spec/containers/1/image"]),
        );
        check(".spec.missing", Ok(&[]));
        check(".spec.missing[]?.x", Ok(&[]));
        check(".spec.replicas, .data", Ok(&["/spec/replicas", "/data"]));
        check(".spec | .replicas", Ok(&["/spec/replicas"]));
        check("(.spec | .replicas)", Ok(&["/spec/replicas"]));
    }

    #[test]
    fn items_are_selected_by_tests() {
        let image = "/spec/containers/0/image";
        check(
            ".spec.containers[] | select(.name == \"app\") | .image",
            Ok(&[image]),
        );
        check(
            ".spec.containers[] | select(.name != \"side\") | .image",
            Ok(&[image]),
        );
        check(
            ".spec.containers[] | select(has(\"env\")).image",
            Ok(&[image]),
        );
        check(
            ".spec.containers[] | select(.name | startswith(\"a\")) | .image",
            Ok(&[image]),
        );
        check(
            ".spec.containers[] | select(.name == \"x\" or (.name == \"app\" and .image == \"a:1\")).image",
            Ok(&[image]),
        );
        check(".spec | select(.replicas > 1).replicas", Ok(&[]));
        check(
            ".. | select(.name? == \"X\") | .value",
            Ok(&["/spec/containers/0/env/0/value"]),
        );
    }

    #[test]
    fn what_is_no_path_is_told() {
        check(
            "",
            Err("failed to parse jq expression: expected a path at \"\""),
        );
        check(
            ".a + 1",
            Err("failed to parse jq expression: unexpected \"+ 1\""),
        );
        check(
            ".spec.replicas[]",
            Err("jq expression returned error: cannot iterate over: number (1)"),
        );
        check(".", Err("jq expression did not return any data"));
    }
}
