//! From the text of a jq path expression to filters.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::{Filter, Operand, Question, Test};

/// How deep parentheses may be nested.
const MAX_NESTING: usize = 64;
/// How large a compiled regular expression may be, in bytes, and how many there may be.
const MAX_PATTERN: usize = 1 << 16;
const MAX_PATTERNS: usize = 16;
/// How often a character is read: those of `any` and `all` may have to be read twice, and so may
/// theirs.
const MAX_READS: usize = 4;
/// How many questions may be asked one after the other.
const MAX_QUESTIONS: usize = 16;
/// Comparisons, longer ones first.
const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

/// Reads a whole expression.
pub(super) fn parse(expression: &str) -> Result<Filter, String> {
    let mut parser = Parser {
        rest: expression,
        nesting: 0,
        parts: 100 + MAX_READS * expression.len(),
        patterns: 0,
    };
    parser.whole()
}

struct Parser<'a> {
    rest: &'a str,
    nesting: usize,
    /// How many parts may still be read.
    parts: usize,
    patterns: usize,
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

    /// Counts a part, of which there must not be too many.
    fn count_part(&mut self) -> Result<(), String> {
        let left = self.parts.checked_sub(1);
        self.parts = left.ok_or("it is too complex")?;
        Ok(())
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
        Ok(alone_or(parts, Filter::Pipe))
    }

    fn comma(&mut self) -> Result<Filter, String> {
        let mut parts = vec![self.alternative()?];
        while self.eat(",") {
            parts.push(self.alternative()?);
        }
        Ok(alone_or(parts, Filter::Comma))
    }

    fn alternative(&mut self) -> Result<Filter, String> {
        let mut parts = vec![self.path()?];
        while self.eat("//") {
            parts.push(self.path()?);
        }
        Ok(alone_or(parts, Filter::Alternative))
    }

    fn path(&mut self) -> Result<Filter, String> {
        self.count_part()?;
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
                let last = match steps.pop() {
                    Some(again @ Filter::Try(_)) => again,
                    last => Filter::Try(Box::new(last.unwrap_or(Filter::Identity))),
                };
                steps.push(last);
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
        if let Some(named) = self.named()? {
            return Ok(named);
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

    /// A filter that is called by a word.
    fn named(&mut self) -> Result<Option<Filter>, String> {
        Ok(Some(if self.word("empty") {
            Filter::Comma(Vec::new())
        } else if self.word("recurse") {
            Filter::Recurse
        } else if self.word("getpath") {
            self.expect("(")?;
            let steps = match self.literal()? {
                Value::Array(steps) => steps.iter().map(index).collect::<Result<_, _>>()?,
                other => return Err(format!("{other} is no path")),
            };
            self.expect(")")?;
            Filter::Pipe(steps)
        } else if self.word("first") {
            Filter::First(Box::new(self.argument()?))
        } else if self.word("last") {
            Filter::Last(Box::new(self.argument()?))
        } else {
            return Ok(None);
        }))
    }

    /// What is in parentheses after a word; without any, the items of a list.
    fn argument(&mut self) -> Result<Filter, String> {
        if !self.eat("(") {
            return Ok(Filter::Iterate);
        }
        let argument = self.pipe()?;
        self.expect(")")?;
        Ok(argument)
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
        let from = if self.rest.trim_start().starts_with(':') {
            None
        } else {
            Some(index(&self.literal()?)?)
        };
        if !self.eat(":") {
            self.expect("]")?;
            return from.ok_or_else(|| "expected an index".to_owned());
        }
        let to = if self.eat("]") {
            None
        } else {
            let to = index(&self.literal()?)?;
            self.expect("]")?;
            Some(to)
        };
        // A part of a list is a list: its items are named by it, or by `[]` after it.
        if !self.eat("[]") && self.rest.starts_with(['.', '[']) {
            return Err(format!(
                "expected [] after a part of a list at {:?}",
                self.rest
            ));
        }
        Ok(Filter::Slice(end(from.as_ref())?, end(to.as_ref())?))
    }

    /// A text, a number, or one of the words of JSON.
    fn literal(&mut self) -> Result<Value, String> {
        self.skip();
        let end = if self.rest.starts_with(['"', '[', '{']) {
            let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
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
        let mut tests = vec![self.conjunction()?];
        while self.word("or") {
            tests.push(self.conjunction()?);
        }
        self.nesting -= 1;
        Ok(alone_or(tests, Test::Or))
    }

    fn conjunction(&mut self) -> Result<Test, String> {
        let mut tests = vec![self.negation()?];
        while self.word("and") {
            tests.push(self.negation()?);
        }
        Ok(alone_or(tests, Test::And))
    }

    fn negation(&mut self) -> Result<Test, String> {
        self.count_part()?;
        let mut test = self.comparison()?;
        while self.rest.trim_start().starts_with('|') {
            self.expect("|")?;
            if !self.word("not") {
                return Err(format!("expected not at {:?}", self.rest));
            }
            test = match test {
                Test::Not(inner) => *inner,
                other => Test::Not(Box::new(other)),
            };
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

    /// A value, or a path, and questions about what is there.
    fn operand(&mut self) -> Result<Operand, String> {
        self.skip();
        let mut operand = match self.question()? {
            Some(question) => Operand::Call(Box::new(Operand::Path(Filter::Identity)), question),
            None if self.rest.starts_with('.') => Operand::Path(self.alternative()?),
            None => return self.literal().map(Operand::Literal),
        };
        for _ in 0..MAX_QUESTIONS {
            let before = self.rest;
            if !self.eat("|") {
                return Ok(operand);
            }
            self.skip();
            operand = match (self.question()?, operand) {
                (Some(question), operand) => Operand::Call(Box::new(operand), question),
                (None, Operand::Path(path)) if self.rest.starts_with('.') => {
                    Operand::Path(Filter::Pipe(vec![path, self.alternative()?]))
                }
                (None, operand) => {
                    self.rest = before;
                    return Ok(operand);
                }
            };
        }
        Err("too many questions".to_owned())
    }

    fn question(&mut self) -> Result<Option<Question>, String> {
        for (name, question) in [
            ("length", Question::Length),
            ("type", Question::Type),
            ("ascii_downcase", Question::Lowercase),
            ("ascii_upcase", Question::Uppercase),
        ] {
            if self.word(name) {
                return Ok(Some(question));
            }
        }
        for any in [true, false] {
            if self.word(if any { "any" } else { "all" }) {
                return self.quantified(any).map(Some);
            }
        }
        if self.word("IN") {
            self.expect("(")?;
            let mut values = vec![self.literal()?];
            while self.eat(",") {
                values.push(self.literal()?);
            }
            self.expect(")")?;
            return Ok(Some(Question::Among(values)));
        }
        for name in ["has", "startswith", "endswith", "contains", "test"] {
            if !self.word(name) {
                continue;
            }
            self.expect("(")?;
            let argument = self.literal()?;
            self.expect(")")?;
            self.patterns += usize::from(name == "test");
            if self.patterns > MAX_PATTERNS {
                return Err(format!("it has more than {MAX_PATTERNS} patterns"));
            }
            return about(name, argument).map(Some);
        }
        Ok(None)
    }

    /// `any(test)` and `all(test)` of the items, or `any(path; test)` of what a path gives.
    fn quantified(&mut self, any: bool) -> Result<Question, String> {
        self.expect("(")?;
        let before = self.rest;
        if self.rest.trim_start().starts_with('.')
            && let Ok(of) = self.pipe()
            && self.eat(";")
        {
            let test = Box::new(self.test()?);
            self.expect(")")?;
            return Ok(Question::Quantified { any, of, test });
        }
        self.rest = before;
        let test = Box::new(self.test()?);
        self.expect(")")?;
        let of = Filter::Iterate;
        Ok(Question::Quantified { any, of, test })
    }
}

/// The only one of several, or all of them together.
fn alone_or<T>(mut parts: Vec<T>, together: fn(Vec<T>) -> T) -> T {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        together(parts)
    }
}

/// A question with an argument.
fn about(name: &str, argument: Value) -> Result<Question, String> {
    let text = || match &argument {
        Value::String(text) => Ok(text.clone()),
        other => Err(format!("{name} needs a text, not {other}")),
    };
    Ok(match name {
        "has" => Question::Has(argument),
        "startswith" => Question::StartsWith(text()?),
        "endswith" => Question::EndsWith(text()?),
        "test" => Question::Matches(pattern(&text()?)?),
        _ => Question::Contains(argument),
    })
}

/// One step of a path, by the value in its brackets.
fn index(value: &Value) -> Result<Filter, String> {
    match value {
        Value::String(name) => Ok(Filter::Field(name.clone())),
        Value::Number(number) => {
            let number = number.as_i64().ok_or("an index is a whole number")?;
            Ok(Filter::Index(number))
        }
        other => Err(format!("{other} is no index")),
    }
}

/// An end of a part of a list.
fn end(index: Option<&Filter>) -> Result<Option<i64>, String> {
    match index {
        None => Ok(None),
        Some(Filter::Index(index)) => Ok(Some(*index)),
        Some(_) => Err("a part of a list is between whole numbers".to_owned()),
    }
}

/// A regular expression, which is not to be larger than any that a person would write.
fn pattern(text: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(text).size_limit(MAX_PATTERN).build();
    regex.map_err(|error| error.to_string())
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
