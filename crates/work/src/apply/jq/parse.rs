//! From the text of a jq path expression to filters.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::{Filter, Operand, Test};

/// How deep parentheses may be nested.
const MAX_NESTING: usize = 64;
/// How large a compiled regular expression may be, in bytes.
const MAX_PATTERN: usize = 1 << 20;
/// Questions with one argument that may end a path in a test.
const QUESTIONS: [&str; 5] = ["has", "startswith", "endswith", "contains", "test"];
/// Comparisons, longer ones first.
const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

/// Reads a whole expression.
pub(super) fn parse(expression: &str) -> Result<Filter, String> {
    let mut parser = Parser {
        rest: expression,
        nesting: 0,
    };
    parser.whole()
}

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
                self.expect("(")?;
                let argument = self.literal()?;
                self.expect(")")?;
                return Ok(Some(if name == "test" {
                    Operand::Matches(path, pattern(&argument)?)
                } else {
                    Operand::Call(path, name, argument)
                }));
            }
        }
        Ok(None)
    }
}

/// A regular expression, which is not to be larger than any that a person would write.
fn pattern(argument: &Value) -> Result<Regex, String> {
    let text = argument
        .as_str()
        .ok_or_else(|| format!("test needs a text, not {argument}"))?;
    let regex = RegexBuilder::new(text).size_limit(MAX_PATTERN).build();
    regex.map_err(|error| error.to_string())
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
