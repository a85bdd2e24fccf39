//! Letters: upper case, lower case, and words in camels, snakes and kebabs.

use std::fmt::Write as _;

/// The upper case of one character; those that become several stay.
pub(super) fn upper(character: char) -> char {
    single(character.to_uppercase(), character)
}

/// The lower case of one character; those that become several stay.
pub(super) fn lower(character: char) -> char {
    match character {
        // The only letter with two lower case forms at the end of words.
        '\u{130}' => 'i',
        _ => single(character.to_lowercase(), character),
    }
}

fn single(mut characters: impl Iterator<Item = char>, otherwise: char) -> char {
    match (characters.next(), characters.next()) {
        (Some(one), None) => one,
        _ => otherwise,
    }
}

/// Upper case at the beginning of every word: `strings.Title`.
pub(super) fn title(text: &str) -> String {
    let mut previous = ' ';
    let title = |character: char| {
        let begins = is_separator(previous);
        previous = character;
        if begins { upper(character) } else { character }
    };
    text.chars().map(title).collect()
}

fn is_separator(character: char) -> bool {
    if character.is_ascii() {
        return !(character.is_ascii_alphanumeric() || character == '_');
    }
    !character.is_alphanumeric() && character.is_whitespace()
}

/// Lower case at the beginning of every word.
pub(super) fn untitle(text: &str) -> String {
    let mut begins = true;
    let untitle = |character: char| {
        if character.is_whitespace() {
            begins = true;
            character
        } else if std::mem::take(&mut begins) {
            lower(character)
        } else {
            character
        }
    };
    text.chars().map(untitle).collect()
}

pub(super) fn swap(text: &str) -> String {
    let swap = |character: char| {
        if character.is_uppercase() {
            lower(character)
        } else if character.is_lowercase() {
            upper(character)
        } else {
            character
        }
    };
    text.chars().map(swap).collect()
}

/// The first letters of words.
pub(super) fn initials(text: &str) -> String {
    let words = text.split(char::is_whitespace);
    words.filter_map(|word| word.chars().next()).collect()
}

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || character.is_whitespace()
}

/// `PascalCase`: words begin with upper case and have no connectors between them.
pub(super) fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    let mut current = None;
    let mut first_is_upper = false;
    for character in characters.by_ref() {
        if !is_connector(character) {
            first_is_upper = character.is_uppercase();
            current = Some(upper(character));
            break;
        }
        out.push(character);
    }
    let Some(mut current) = current else {
        // Only connectors: the last one is written twice, as the original does.
        out.extend(text.chars().next_back());
        return out;
    };
    for next in characters {
        let previous = current;
        current = next;
        if is_connector(current) && is_connector(previous) {
            out.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_is_upper = current.is_uppercase();
            current = upper(current);
        } else {
            if first_is_upper {
                if current.is_uppercase() {
                    current = lower(current);
                } else {
                    first_is_upper = false;
                }
            }
            out.push(previous);
        }
    }
    out.push(current);
    out
}

/// What a word is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_letter(character: char) -> bool {
    character.is_alphabetic()
}

fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_punctuation() && !"$+<=>^`|~".contains(character);
    }
    matches!(
        character,
        '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}'
            | '\u{3008}'..='\u{3011}'
    )
}

fn length_while(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !accept(c)).unwrap_or(text.len())
}

/// The first word, its kind, and what follows.
fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else {
        return (Word::None, "", "");
    };
    let start = first.len_utf8();
    let rest = &text[start..];
    let lower_letter = |c: char| is_letter(c) && !c.is_uppercase();
    let (kind, length) = if is_connector(first) {
        (Word::Connector, start + length_while(rest, is_connector))
    } else if is_punctuation(first) {
        (
            Word::Punctuation,
            start + length_while(rest, is_punctuation),
        )
    } else if first.is_uppercase() {
        (Word::Upper, upper_word(text, start))
    } else if is_letter(first) {
        (Word::Letters, start + length_while(rest, lower_letter))
    } else if first.is_numeric() {
        (Word::Number, start + length_while(rest, char::is_numeric))
    } else {
        let other =
            |c: char| !(is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c));
        (Word::Other, start + length_while(rest, other))
    };
    let (word, remaining) = text.split_at(length);
    (kind, word, remaining)
}

/// Letters in upper case, of which the last belongs to the next word if small ones follow; or one
/// letter in upper case and small ones.
fn upper_word(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let Some(second) = rest.chars().next() else {
        return start;
    };
    if second.is_uppercase() {
        let length = start + length_while(rest, char::is_uppercase);
        let followed = text[length..].chars().next().is_some_and(is_letter);
        let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
        return if followed { length - last } else { length };
    }
    if is_letter(second) {
        return start + length_while(rest, |c| is_letter(c) && !c.is_uppercase());
    }
    start
}

fn push_lower(out: &mut String, kind: Word, word: &str, connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        out.push_str(word);
        return;
    }
    for character in word.chars() {
        let shown = if is_connector(character) {
            connector
        } else if character.is_uppercase() {
            lower(character)
        } else {
            character
        };
        // Writing to a String cannot fail.
        let _ = out.write_char(shown);
    }
}

/// Words in lower case with a connector between them: `snake_case`, `kebab-case`.
pub(super) fn connected(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let (mut kind, mut word, mut rest) = next_word(text);
    let joins = |kind: Word| !matches!(kind, Word::Connector | Word::Punctuation);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Letters | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && joins(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if joins(kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind != Word::Letters {
                    // A number is part of the word before it.
                    push_lower(&mut out, Word::Number, number, connector);
                    if joins(kind) {
                        out.push(connector);
                    }
                    continue;
                }
                // Small letters follow: the number begins a word.
                out.push(connector);
                push_lower(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Letters | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && joins(kind) {
                    out.push(connector);
                }
            }
        }
    }
    push_lower(&mut out, kind, word, connector);
    out
}
