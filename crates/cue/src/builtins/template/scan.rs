//! Splits a template into text and actions, and actions into words.

/// A piece of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Action(Vec<Word>),
}

/// A word of an action.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// `.a.b`; empty for the dot itself.
    Field(Vec<String>),
    /// `$x.a.b`; the first is the name, empty for `$`.
    Variable(String, Vec<String>),
    /// A function or keyword.
    Name(String),
    Number(String),
    Text(String),
    Pipe,
    Declare,
    Assign,
    Comma,
    Open,
    Close,
    /// `.a` directly after a closing parenthesis.
    Chain(Vec<String>),
}

/// Splits a template.
pub(super) fn pieces(source: &str) -> Result<Vec<Piece>, String> {
    let mut result = Vec::new();
    let mut rest = source;
    let mut trim_next = false;
    loop {
        let (text, after) = match rest.find("{{") {
            Some(start) => (&rest[..start], Some(&rest[start + 2..])),
            None => (rest, None),
        };
        let mut text = if trim_next { text.trim_start() } else { text };
        let Some(after) = after else {
            push_text(&mut result, text);
            return Ok(result);
        };
        let (body_start, trims) = match after.strip_prefix('-') {
            Some(body) if body.starts_with(char::is_whitespace) => (body, true),
            _ => (after, false),
        };
        if trims {
            text = text.trim_end();
        }
        push_text(&mut result, text);
        let end = action_end(body_start)?;
        let body = &body_start[..end];
        rest = &body_start[end + 2..];
        let trimmed = body
            .strip_suffix('-')
            .filter(|body| body.ends_with(char::is_whitespace));
        trim_next = trimmed.is_some();
        let body = trimmed.unwrap_or(body).trim();
        if body.starts_with("/*") {
            if !body.ends_with("*/") {
                return Err("unclosed comment".to_owned());
            }
            continue;
        }
        result.push(Piece::Action(words(body)?));
    }
}

fn push_text(result: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        result.push(Piece::Text(text.to_owned()));
    }
}

/// Where the closing braces are, skipping quoted text.
fn action_end(body: &str) -> Result<usize, String> {
    let bytes = body.as_bytes();
    let mut position = 0;
    if body.trim_start().starts_with("/*") {
        let comment = body.find("*/").ok_or("unclosed comment")?;
        position = comment + 2;
    }
    while position < bytes.len() {
        match bytes[position] {
            b'}' if bytes.get(position + 1) == Some(&b'}') => return Ok(position),
            quote @ (b'"' | b'`' | b'\'') => position += quoted_length(&body[position..], quote)?,
            _ => position += 1,
        }
    }
    Err("unclosed action".to_owned())
}

fn quoted_length(text: &str, quote: u8) -> Result<usize, String> {
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quote != b'`' => escaped = true,
            _ if byte == quote => return Ok(position + 1),
            _ => {}
        }
    }
    Err("unterminated quoted string".to_owned())
}

fn words(body: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = body;
    let mut previous_closes = false;
    loop {
        let trimmed = rest.trim_start();
        let spaced = trimmed.len() != rest.len();
        rest = trimmed;
        let Some(first) = rest.chars().next() else {
            return Ok(words);
        };
        let (word, length) = match first {
            '|' => (Word::Pipe, 1),
            ',' => (Word::Comma, 1),
            '(' => (Word::Open, 1),
            ')' => (Word::Close, 1),
            ':' if rest.starts_with(":=") => (Word::Declare, 2),
            '=' => (Word::Assign, 1),
            '"' | '`' | '\'' => quoted(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest),
            '.' => {
                let (fields, length) = fields(rest);
                let chained = previous_closes && !spaced;
                (
                    if chained {
                        Word::Chain(fields)
                    } else {
                        Word::Field(fields)
                    },
                    length,
                )
            }
            '$' => {
                let name_length = identifier_length(&rest[1..]);
                let (path, length) = fields(&rest[1 + name_length..]);
                let path_used = !path.is_empty();
                let total = 1 + name_length + if path_used { length } else { 0 };
                (
                    Word::Variable(rest[1..=name_length].to_owned(), path),
                    total,
                )
            }
            '+' | '-' | '0'..='9' => number(rest),
            _ if identifier_length(rest) > 0 => {
                let length = identifier_length(rest);
                (Word::Name(rest[..length].to_owned()), length)
            }
            _ => return Err(format!("unexpected {first:?} in action")),
        };
        previous_closes = word == Word::Close;
        words.push(word);
        rest = &rest[length..];
    }
}

fn identifier_length(text: &str) -> usize {
    let end = text
        .find(|c: char| c != '_' && !c.is_alphanumeric())
        .unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        0
    } else {
        end
    }
}

/// `.a.b.c`, or a lone dot.
fn fields(text: &str) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut length = 0;
    while text[length..].starts_with('.') {
        let name = identifier_length(&text[length + 1..]);
        if name == 0 {
            break;
        }
        path.push(text[length + 1..=length + name].to_owned());
        length += 1 + name;
    }
    (path, length.max(usize::from(text.starts_with('.'))))
}

fn number(text: &str) -> (Word, usize) {
    let length = text
        .char_indices()
        .find(|(position, c)| {
            let exponent_sign = matches!(c, '+' | '-')
                && (*position == 0 || text[..*position].ends_with(['e', 'E']));
            !(c.is_alphanumeric() || matches!(c, '.' | '_') || exponent_sign)
        })
        .map_or(text.len(), |(position, _)| position);
    (Word::Number(text[..length].to_owned()), length)
}

fn quoted(text: &str) -> Result<(Word, usize), String> {
    let quote = text.as_bytes()[0];
    let length = quoted_length(text, quote)?;
    let body = &text[1..length - 1];
    let value = if quote == b'`' {
        body.to_owned()
    } else {
        unescape(body)?
    };
    if quote == b'\'' {
        let code = value.chars().next().map_or(0, u32::from);
        return Ok((Word::Number(code.to_string()), length));
    }
    Ok((Word::Text(value), length))
}

fn unescape(body: &str) -> Result<String, String> {
    let mut output = String::new();
    let mut characters = body.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            output.push(character);
            continue;
        }
        let escape = characters.next().ok_or("invalid syntax")?;
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits > 0 {
            let code: String = characters.by_ref().take(digits).collect();
            let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
            output.push(code.ok_or("invalid syntax")?);
            continue;
        }
        output.push(match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '"' | '\'' => escape,
            _ => return Err("invalid syntax".to_owned()),
        });
    }
    Ok(output)
}
