//! Shell patterns: `*`, `?` and bracket classes; no element separator is matched by any of them.

use super::os::Os;

const BAD_PATTERN: &str = "syntax error in pattern";

/// Whether a name matches a pattern as a whole.
pub(super) fn matches(pattern: &str, name: &str, os: Os) -> Result<bool, &'static str> {
    if pattern.contains("**") {
        return Err("'**' is not supported in patterns as of yet");
    }
    let items = parse(pattern, os)?;
    let name: Vec<char> = name.chars().collect();
    Ok(matches_items(&items, &name, os.separator()))
}

enum Item {
    Star,
    Any,
    Literal(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

fn parse(pattern: &str, os: Os) -> Result<Vec<Item>, &'static str> {
    let mut characters = pattern.chars().peekable();
    let escapes = os != Os::Windows;
    let mut items = Vec::new();
    while let Some(character) = characters.next() {
        items.push(match character {
            '*' => Item::Star,
            '?' => Item::Any,
            '\\' if escapes => Item::Literal(characters.next().ok_or(BAD_PATTERN)?),
            '[' => parse_class(&mut characters, escapes)?,
            _ => Item::Literal(character),
        });
    }
    Ok(items)
}

fn parse_class(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    escapes: bool,
) -> Result<Item, &'static str> {
    let negated = characters.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    let one = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>| match characters.next() {
        None | Some('-' | ']') => Err(BAD_PATTERN),
        Some('\\') if escapes => characters.next().ok_or(BAD_PATTERN),
        Some(character) => Ok(character),
    };
    loop {
        if !ranges.is_empty() && characters.next_if_eq(&']').is_some() {
            return Ok(Item::Class { negated, ranges });
        }
        let low = one(characters)?;
        let high = if characters.next_if_eq(&'-').is_some() {
            one(characters)?
        } else {
            low
        };
        ranges.push((low, high));
    }
}

/// Greedy matching with one point to return to: the last star.
fn matches_items(items: &[Item], name: &[char], separator: char) -> bool {
    let (mut item, mut position) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let advanced = match items.get(item) {
            None if position == name.len() => return true,
            None => false,
            Some(Item::Star) => {
                retry = Some((item, position));
                item += 1;
                continue;
            }
            Some(single) => name
                .get(position)
                .is_some_and(|c| accepts(single, *c, separator)),
        };
        if advanced {
            item += 1;
            position += 1;
            continue;
        }
        match retry {
            Some((star, from)) if from < name.len() && name[from] != separator => {
                retry = Some((star, from + 1));
                item = star + 1;
                position = from + 1;
            }
            _ => return false,
        }
    }
}

fn accepts(item: &Item, character: char, separator: char) -> bool {
    match item {
        Item::Star => false,
        Item::Any => character != separator,
        Item::Literal(literal) => *literal == character,
        Item::Class { negated, ranges } => {
            let inside = ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&character));
            inside != *negated
        }
    }
}
