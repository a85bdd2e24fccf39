//! The table of messages, read once from `messages.txt`. Its notation is described there.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("messages.txt");

/// The API version of kinds that belong to every version.
const EVERY_VERSION: &str = "*";

// A test reads the table and fails on any mistake in it, so it is not empty at run time.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT).unwrap_or_default());

/// The table of all messages.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// All messages, and which of them are kinds.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) messages: Vec<Message>,
    /// Indexes of messages by API version and kind.
    pub(crate) kinds: HashMap<(&'static str, &'static str), usize>,
}

/// A message, and the JSON that it stands for.
#[derive(Debug)]
pub(crate) struct Message {
    /// Whether its JSON is that of the first field that is given, rather than an object.
    pub(crate) is_choice: bool,
    pub(crate) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// Its name in JSON.
    pub(crate) name: &'static str,
    pub(crate) presence: Presence,
    pub(crate) shape: Shape,
    /// The type of the field, or of the items of a list or map.
    pub(crate) kind: Kind,
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Unless it is empty, zero or false.
    NotZero,
    /// If it is on the wire.
    Given,
    /// Always; as `null` if it is not on the wire.
    GivenOrNull,
    /// Always; as the zero value if it is not on the wire.
    Always,
    /// As the fields of its message, which belong to the object around it.
    Inline,
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    /// By text.
    Map,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Json,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// A message that is a list of texts.
    Strings,
    /// The index of a message.
    Message(usize),
}

type Names = HashMap<(&'static str, &'static str), usize>;

impl Table {
    /// The message of a kind.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let index = self
            .kinds
            .get(&(api_version, kind))
            .or_else(|| self.kinds.get(&(EVERY_VERSION, kind)))?;
        Some(self.message(*index))
    }

    /// The message of an index that the table itself contains.
    pub(crate) fn message(&self, index: usize) -> &Message {
        &self.messages[index]
    }

    /// Reads the notation, or says which line or word of it cannot be read.
    pub(crate) fn parse(text: &'static str) -> Result<Self, String> {
        let names = names(text)?;
        let mut table = Self::default();
        let mut package = "";
        for line in lines(text) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("@") => {
                    let (Some(version), Some(package)) = (words.next(), words.next()) else {
                        return Err(line.to_owned());
                    };
                    for kind in words {
                        let index = names.get(&(package, kind)).ok_or(kind)?;
                        table.kinds.insert((version, kind), *index);
                    }
                }
                Some("#") => package = words.next().ok_or(line)?,
                Some(name) => table.messages.push(Message {
                    is_choice: name.ends_with('|'),
                    fields: words
                        .map(|word| field(word, package, &names).ok_or(word))
                        .collect::<Result<_, _>>()?,
                }),
                None => {}
            }
        }
        Ok(table)
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with("//"))
}

/// The indexes of all messages by package and name.
fn names(text: &'static str) -> Result<Names, String> {
    let mut names = Names::new();
    let mut package = "";
    for line in lines(text) {
        match line.split_ascii_whitespace().next() {
            None | Some("@") => {}
            Some("#") => package = line.trim_start_matches(['#', ' ']),
            Some(name) => {
                let index = names.len();
                if names
                    .insert((package, name.trim_end_matches('|')), index)
                    .is_some()
                {
                    return Err(format!("{package}.{name} is there twice"));
                }
            }
        }
    }
    Ok(names)
}

fn field(word: &'static str, package: &'static str, names: &Names) -> Option<Field> {
    let (number, rest) = word.split_once(':')?;
    let (name, kind) = rest.split_once(':').unwrap_or((rest, "string"));
    let (name, presence) = if name == "^" {
        (name, Presence::Inline)
    } else if let Some(name) = name.strip_suffix("?!") {
        (name, Presence::GivenOrNull)
    } else if let Some(name) = name.strip_suffix('?') {
        (name, Presence::Given)
    } else if let Some(name) = name.strip_suffix('!') {
        (name, Presence::Always)
    } else {
        (name, Presence::NotZero)
    };
    let (shape, kind) = if let Some(item) = enclosed(kind, '[', ']') {
        (Shape::List, item)
    } else if let Some(item) = enclosed(kind, '{', '}') {
        (Shape::Map, item)
    } else {
        (Shape::One, kind)
    };
    Some(Field {
        number: number.parse().ok()?,
        name,
        presence,
        shape,
        kind: kind_of(kind, package, names)?,
    })
}

fn enclosed(text: &'static str, open: char, close: char) -> Option<&'static str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

fn kind_of(word: &'static str, package: &'static str, names: &Names) -> Option<Kind> {
    Some(match word {
        "string" => Kind::String,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "json" => Kind::Json,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "quantity" => Kind::Quantity,
        "intstr" => Kind::IntOrString,
        "strings" => Kind::Strings,
        message => {
            let qualified = message.rsplit_once('.').unwrap_or((package, message));
            Kind::Message(*names.get(&qualified)?)
        }
    })
}
