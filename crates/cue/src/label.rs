//! Interned labels: a label is a small number, its text lives in an interner.
//!
//! A compiled program freezes its interner; each evaluation adds the labels that
//! only data brings in an overlay of its own, so programs stay shareable.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// A field name or list index.
///
/// The top bit marks an index. The two low bits of the rest tell regular labels,
/// definitions and hidden labels apart without a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);

const INDEX: u32 = 1 << 31;
const DEFINITION: u32 = 1;
const HIDDEN: u32 = 2;

impl Label {
    /// The number behind the label, for tables.
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// The label of a list element.
    pub fn index(index: usize) -> Self {
        Self(INDEX | (u32::try_from(index).unwrap_or(INDEX - 1) & !INDEX))
    }

    /// The list index, if the label is one.
    pub fn as_index(self) -> Option<usize> {
        (self.0 & INDEX != 0).then_some((self.0 & !INDEX) as usize)
    }

    /// Whether this is a list index.
    pub fn is_index(self) -> bool {
        self.0 & INDEX != 0
    }

    /// Whether this is an ordinary field name.
    pub fn is_regular(self) -> bool {
        !self.is_index() && self.0 & (DEFINITION | HIDDEN) == 0
    }

    /// Whether this is `#x` or `_#x`.
    pub fn is_definition(self) -> bool {
        !self.is_index() && self.0 & DEFINITION != 0
    }

    /// Whether this is `_x` or `_#x`.
    pub fn is_hidden(self) -> bool {
        !self.is_index() && self.0 & HIDDEN != 0
    }

    fn slot(self) -> usize {
        ((self.0 & !INDEX) >> 2) as usize
    }
}

/// What tells labels of one spelling apart: definition, hidden, and of which package.
type Variant = (u32, u32);

/// A table of labels, possibly on top of a frozen one.
#[derive(Debug, Default, Clone)]
pub struct Interner {
    base: Option<Arc<Interner>>,
    offset: usize,
    texts: Vec<Arc<str>>,
    /// Regular labels, by far the most.
    regular: HashMap<Arc<str>, Label>,
    special: HashMap<Arc<str>, Vec<(Variant, Label)>>,
}

impl Interner {
    /// An empty table on top of a frozen one.
    pub fn over(base: Arc<Interner>) -> Self {
        let offset = base.len();
        Self {
            base: Some(base),
            offset,
            texts: Vec::new(),
            regular: HashMap::new(),
            special: HashMap::new(),
        }
    }

    fn len(&self) -> usize {
        self.offset + self.texts.len()
    }

    fn find(&self, text: &str, variant: Variant) -> Option<Label> {
        let below = self.base.as_ref().and_then(|base| base.find(text, variant));
        below.or_else(|| {
            if variant == (0, 0) {
                return self.regular.get(text).copied();
            }
            let known = self.special.get(text)?;
            known
                .iter()
                .find(|(own, _)| *own == variant)
                .map(|(_, label)| *label)
        })
    }

    fn intern(&mut self, text: &str, flags: u32, package: u32) -> Label {
        let variant = (flags, package);
        if let Some(label) = self.find(text, variant) {
            return label;
        }
        let text: Arc<str> = text.into();
        let slot = u32::try_from(self.len()).unwrap_or(u32::MAX >> 3) & (u32::MAX >> 3);
        let label = Label((slot << 2) | flags);
        self.texts.push(text.clone());
        if variant == (0, 0) {
            self.regular.insert(text, label);
        } else {
            let known = self.special.entry(text).or_default();
            known.push((variant, label));
        }
        label
    }

    /// The label of a regular field.
    pub fn string(&mut self, text: &str) -> Label {
        self.intern(text, 0, 0)
    }

    /// The label an identifier stands for; hidden ones are private to `package`.
    pub fn identifier(&mut self, text: &str, package: u32) -> Label {
        if text.starts_with("_#") {
            self.intern(text, DEFINITION | HIDDEN, package + 1)
        } else if text.starts_with('_') && text != "_" {
            self.intern(text, HIDDEN, package + 1)
        } else if text.starts_with('#') {
            self.intern(text, DEFINITION, 0)
        } else {
            self.intern(text, 0, 0)
        }
    }

    /// The text of a label; the digits of an index.
    pub fn text(&self, label: Label) -> Arc<str> {
        if let Some(index) = label.as_index() {
            return index.to_string().into();
        }
        let slot = label.slot();
        match (&self.base, slot.checked_sub(self.offset)) {
            (_, Some(own)) => self.texts.get(own).cloned().unwrap_or_default(),
            (Some(base), None) => base.text(label),
            (None, None) => Arc::default(),
        }
    }

    /// The text of a label that is no index, borrowed: what many threads share is better not counted.
    pub(crate) fn spelling(&self, label: Label) -> &str {
        let slot = label.slot();
        match (&self.base, slot.checked_sub(self.offset)) {
            (_, Some(own)) => self.texts.get(own).map_or("", |text| text),
            (Some(base), None) => base.spelling(label),
            (None, None) => "",
        }
    }

    /// The label as it is printed in paths: quoted unless it is an identifier.
    pub fn show(&self, label: Label) -> String {
        let text = self.text(label);
        if label.is_index() || !label.is_regular() || is_identifier(&text) {
            text.to_string()
        } else {
            quote(&text)
        }
    }
}

/// Whether `text` can be written as a label without quotes and stay a regular field.
pub fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '$');
    first && characters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

/// A string literal in double quotes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
