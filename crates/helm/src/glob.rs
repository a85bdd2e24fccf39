//! Patterns for paths: `*` and `?` do not match a slash, `**` does.

/// True if a pattern matches a whole path; `None` if it is not a pattern.
///
/// The cost is bounded by the product of both lengths.
pub(crate) fn matches(pattern: &str, path: &str) -> Option<bool> {
    let tokens = parse(pattern)?;
    let path: Vec<char> = path.chars().collect();
    // Which positions of the path are reached after each token.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for token in &tokens {
        reached = advance(token, &reached, &path);
    }
    Some(reached[path.len()])
}

enum Token {
    /// Any number of characters, slashes only if set.
    Any {
        slashes: bool,
    },
    One,
    Character(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// One of several patterns.
    Choice(Vec<Vec<Token>>),
}

fn advance(token: &Token, reached: &[bool], path: &[char]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    if let Token::Choice(patterns) = token {
        for pattern in patterns {
            let mut inner = reached.to_vec();
            for token in pattern {
                inner = advance(token, &inner, path);
            }
            for (next, inner) in next.iter_mut().zip(inner) {
                *next |= inner;
            }
        }
        return next;
    }
    for at in 0..reached.len() {
        if !reached[at] {
            continue;
        }
        if let Token::Any { slashes } = token {
            for to in at..reached.len() {
                next[to] = true;
                if to < path.len() && path[to] == '/' && !slashes {
                    break;
                }
            }
        } else if at < path.len() && token.matches(path[at]) {
            next[at + 1] = true;
        }
    }
    next
}

impl Token {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::Any { .. } | Self::Choice(_) => false,
            Self::One => character != '/',
            Self::Character(own) => *own == character,
            Self::Class { negated, ranges } => {
                let is_inside = ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&character));
                is_inside != *negated && character != '/'
            }
        }
    }
}

fn parse(pattern: &str) -> Option<Vec<Token>> {
    let mut characters = pattern.chars().peekable();
    let (tokens, _) = sequence(&mut characters, 0)?;
    Some(tokens)
}

type Characters<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// Reads tokens up to the end, or up to `,` or `}` inside of braces; also returns what ended them.
fn sequence(characters: &mut Characters<'_>, depth: usize) -> Option<(Vec<Token>, Option<char>)> {
    let mut tokens = Vec::new();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => {
                let slashes = characters.next_if_eq(&'*').is_some();
                Token::Any { slashes }
            }
            '?' => Token::One,
            '\\' => Token::Character(characters.next()?),
            '[' => class(characters)?,
            '{' if depth < 8 => {
                let mut patterns = Vec::new();
                loop {
                    let (inner, end) = sequence(characters, depth + 1)?;
                    patterns.push(inner);
                    match end? {
                        ',' => {}
                        _ => break,
                    }
                }
                Token::Choice(patterns)
            }
            ',' | '}' if depth > 0 => return Some((tokens, Some(character))),
            other => Token::Character(other),
        });
    }
    Some((tokens, None))
}

fn class(characters: &mut Characters<'_>) -> Option<Token> {
    let negated = characters
        .next_if(|next| matches!(next, '^' | '!'))
        .is_some();
    let mut ranges = Vec::new();
    loop {
        let mut low = characters.next()?;
        if low == ']' && !ranges.is_empty() {
            return Some(Token::Class { negated, ranges });
        }
        if low == '\\' {
            low = characters.next()?;
        }
        let mut high = low;
        if characters.next_if_eq(&'-').is_some() {
            high = characters.next()?;
            if high == '\\' {
                high = characters.next()?;
            }
        }
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", Some(true)),
            ("*.txt", "d/a.txt", Some(false)),
            ("**", "d/a.txt", Some(true)),
            ("d/*", "d/a.txt", Some(true)),
            ("**.txt", "d/a.txt", Some(true)),
            ("conf/{a,b}.ini", "conf/b.ini", Some(true)),
            ("[a-c]?", "bz", Some(true)),
            ("[^a-c]", "b", Some(false)),
            ("[a", "a", None),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
