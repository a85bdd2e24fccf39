//! What texts of many objects have in common, kept once.
//!
//! Most objects of a fleet are like many others but for names, numbers, times and keys: the default
//! roles of a thousand clusters, their namespaces, nodes and accounts, the versions of an object that
//! the history keeps. The rest of such a text is its [`Shape`]. It is kept once for all objects that
//! have it, and each keeps only its own [values](Values).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use super::scan::{Role, Span, Token};

/// A text shorter than this is kept whole.
const WORTHWHILE: usize = 160;
/// The most values that a text may have: more are seldom alike.
const MOST: u8 = 128;

/// A text without its values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The text with nothing where its values stand.
    literal: Box<[u8]>,
    /// Where in the literal which value stands, in order.
    holes: Box<[(u32, u8)]>,
    labels: Box<[(Piece, Piece)]>,
    uid: Option<Piece>,
    is_deleting: bool,
}

/// A string within a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Literal(Span),
    Value(u8),
}

/// The values of a text. The version is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    /// One after the other, each after its length; the length of a long one is zero.
    packed: Box<[u8]>,
    /// The long ones with their numbers: certificates, for example, which several objects have, and
    /// all versions of each.
    long: Box<[(u8, Arc<[u8]>)]>,
}

impl Values {
    /// There are few enough of them that each has a number.
    fn new(values: &[&[u8]]) -> Self {
        let (mut packed, mut long) = (Vec::new(), Vec::new());
        for (number, value) in (0..=u8::MAX).zip(values) {
            if let Ok(length) = u8::try_from(value.len()) {
                packed.push(length);
                packed.extend_from_slice(value);
            } else {
                packed.push(0);
                long.push((number, SHARED.lock().long.share(value)));
            }
        }
        Self {
            packed: packed.into(),
            long: long.into(),
        }
    }

    /// These values with another version.
    pub(super) fn with_version(self, version: &str) -> Self {
        let before = self.packed.first().map_or(0, |length| usize::from(*length));
        let rest = self.packed.get(before + 1..).unwrap_or_default();
        // The digits of a number are few.
        let length = u8::try_from(version.len()).unwrap_or_default();
        let version = &version.as_bytes()[..usize::from(length)];
        Self {
            packed: [&[length], version, rest].concat().into(),
            long: self.long,
        }
    }

    fn nth(&self, number: u8) -> &[u8] {
        self.iter().nth(number.into()).unwrap_or_default()
    }

    /// By their numbers, without asking for memory: lists have thousands of objects.
    fn all(&self) -> [&[u8]; MOST as usize] {
        let mut all: [&[u8]; MOST as usize] = [&[]; MOST as usize];
        for (place, value) in all.iter_mut().zip(self.iter()) {
            *place = value;
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let (mut rest, mut long) = (&*self.packed, self.long.iter().peekable());
        (0..=u8::MAX).map_while(move |number| {
            let (length, after) = rest.split_first()?;
            let (value, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            let own = long.next_if(|(position, _)| *position == number);
            Some(own.map_or(value, |(_, value)| value))
        })
    }

    /// About how many bytes they take.
    pub(super) fn len(&self) -> usize {
        let long = self.long.iter().map(|(_, value)| value.len());
        self.packed.len() + long.sum::<usize>()
    }
}

impl Shape {
    /// Appends the text that has these values, but for so many bytes of its beginning, which must
    /// belong to no value.
    pub(super) fn write(&self, values: &Values, skip: usize, out: &mut Vec<u8>) {
        let values = values.all();
        let mut from = skip;
        for (offset, number) in &self.holes {
            let upto = *offset as usize;
            out.extend_from_slice(&self.literal[from..upto]);
            out.extend_from_slice(values[usize::from(*number)]);
            from = upto;
        }
        out.extend_from_slice(&self.literal[from..]);
    }

    /// Appends at most `most` bytes of the text that has these values, beginning at an offset.
    pub(super) fn write_part(&self, values: &Values, from: usize, most: usize, out: &mut Vec<u8>) {
        let values = values.all();
        let (mut skip, mut room) = (from, most);
        let mut add = |piece: &[u8]| {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            let taken = room.min(piece.len() - skipped);
            room -= taken;
            out.extend_from_slice(&piece[skipped..skipped + taken]);
            room > 0
        };
        let mut at = 0;
        for (offset, number) in &self.holes {
            let upto = *offset as usize;
            if !add(&self.literal[at..upto]) || !add(values[usize::from(*number)]) {
                return;
            }
            at = upto;
        }
        add(&self.literal[at..]);
    }

    /// How long the text is that has these values.
    pub(super) fn length(&self, values: &Values) -> usize {
        let values = values.all();
        let holes = self.holes.iter();
        let lengths = holes.map(|(_, number)| values[usize::from(*number)].len());
        self.literal.len() + lengths.sum::<usize>()
    }

    pub(super) fn uid<'a>(&'a self, values: &'a Values) -> &'a [u8] {
        self.uid.map_or(&[], |piece| self.resolve(piece, values))
    }

    pub(super) fn label<'a>(&'a self, key: &str, values: &'a Values) -> Option<&'a [u8]> {
        let mut labels = self.labels.iter();
        let found = labels.find(|(name, _)| self.resolve(*name, values) == key.as_bytes());
        found.map(|(_, value)| self.resolve(*value, values))
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.is_deleting
    }

    fn resolve<'a>(&'a self, piece: Piece, values: &'a Values) -> &'a [u8] {
        match piece {
            Piece::Literal(span) => span.of(&self.literal),
            Piece::Value(number) => values.nth(number),
        }
    }
}

/// The shape of a text and its values, if that is shorter than the text and others have the shape
/// as well: not the first one of its kind, but the next.
pub(super) fn recognise(text: &[u8], tokens: &[Token]) -> Option<(Arc<Shape>, Values)> {
    if text.len() < WORTHWHILE {
        return None;
    }
    let (shape, values) = split(text, tokens)?;
    if shape.literal.len() < WORTHWHILE / 2 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    shape.literal.hash(&mut hasher);
    shape.holes.hash(&mut hasher);
    let shared = SHARED.lock().shapes.share(hasher.finish(), shape)?;
    Some((shared, Values::new(&values)))
}

/// Takes a text apart; nothing if it has too many values, or no version.
fn split<'a>(text: &'a [u8], tokens: &[Token]) -> Option<(Shape, Vec<&'a [u8]>)> {
    let names: Vec<&[u8]> = tokens
        .iter()
        .filter(|token| token.role == Role::Name)
        .map(|token| token.span.of(text))
        .collect();
    let mut parts = Parts::default();
    let mut copied = 0;
    for token in tokens {
        let value = token.span.of(text);
        let number = match token.role {
            Role::Version => {
                parts.version = Some(value);
                Some(0)
            }
            role if is_own(role, value, &names) => Some(parts.number_of(value)?),
            _ => None,
        };
        parts
            .literal
            .extend_from_slice(&text[copied..token.span.start as usize]);
        parts.add(token.role, value, number)?;
        copied = token.span.end as usize;
    }
    parts.literal.extend_from_slice(&text[copied..]);
    parts.finish()
}

/// What a text has been taken apart to so far.
#[derive(Default)]
struct Parts<'a> {
    literal: Vec<u8>,
    holes: Vec<(u32, u8)>,
    version: Option<&'a [u8]>,
    /// The values but for the version.
    values: Vec<&'a [u8]>,
    labels: Vec<(Piece, Piece)>,
    /// A label whose value is next.
    label: Option<Piece>,
    uid: Option<Piece>,
    is_deleting: bool,
}

impl<'a> Parts<'a> {
    /// The number of a value, which is the same wherever it stands; nothing if there are too many.
    fn number_of(&mut self, value: &'a [u8]) -> Option<u8> {
        let known = self.values.iter().position(|known| *known == value);
        let position = known.unwrap_or(self.values.len());
        if position == self.values.len() {
            self.values.push(value);
        }
        // The version comes first.
        u8::try_from(position + 1)
            .ok()
            .filter(|number| *number < MOST)
    }

    /// Adds a string: the value of that number, or a part of the literal.
    fn add(&mut self, role: Role, value: &[u8], number: Option<u8>) -> Option<()> {
        let start = u32::try_from(self.literal.len()).ok()?;
        let piece = if let Some(number) = number {
            self.holes.push((start, number));
            Piece::Value(number)
        } else {
            self.literal.extend_from_slice(value);
            let end = u32::try_from(self.literal.len()).ok()?;
            Piece::Literal(Span { start, end })
        };
        match role {
            Role::LabelKey => self.label = Some(piece),
            Role::LabelValue => {
                let label = self.label.take();
                self.labels.extend(label.map(|key| (key, piece)));
            }
            Role::Uid => self.uid = Some(piece),
            Role::Deletion => self.is_deleting = true,
            _ => {}
        }
        Some(())
    }

    fn finish(self) -> Option<(Shape, Vec<&'a [u8]>)> {
        let values = std::iter::once(self.version?).chain(self.values).collect();
        let shape = Shape {
            literal: self.literal.into(),
            holes: self.holes.into(),
            labels: self.labels.into(),
            uid: self.uid,
            is_deleting: self.is_deleting,
        };
        Some((shape, values))
    }
}

/// Whether a string is likely to be an object's own: a name, a number, a time, a uid, a key.
fn is_own(role: Role, value: &[u8], names: &[&[u8]]) -> bool {
    match role {
        Role::Key | Role::LabelKey => has_uid(value),
        _ => has_number(value) || names.iter().any(|name| has_word(value, name)),
    }
}

/// Whether there is a digit, other than in `v1` and `k8s`.
fn has_number(value: &[u8]) -> bool {
    let mut before = 0;
    value.iter().any(|byte| {
        let found = byte.is_ascii_digit() && !matches!(before, b'v' | b'V' | b'k');
        before = *byte;
        found
    })
}

/// Whether there is something like `01234567-89ab-cdef-0123-456789abcdef`.
fn has_uid(value: &[u8]) -> bool {
    const LENGTH: usize = 36;
    value.windows(LENGTH).any(|window| {
        (window[8], window[13], window[18], window[23]) == (b'-', b'-', b'-', b'-')
            && window
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
    })
}

/// Whether a word occurs, not as part of a longer one. Nobody looks for it in long texts.
fn has_word(value: &[u8], word: &[u8]) -> bool {
    const LONG: usize = 255;
    let Some(first) = word.first().filter(|_| value.len() <= LONG) else {
        return false;
    };
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let mut starts = value.iter().enumerate().filter(|(_, byte)| *byte == first);
    starts.any(|(start, _)| {
        value[start..].starts_with(word)
            && !is_part(start.checked_sub(1).and_then(|before| value.get(before)))
            && !is_part(value.get(start + word.len()))
    })
}

/// What is in use in this process.
static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Shared {
    shapes: Shapes,
    long: LongValues,
}

/// Long values by their hashes.
#[derive(Default)]
struct LongValues(Table<[u8]>);

impl LongValues {
    /// The one that is kept of all that are equal to this one.
    fn share(&mut self, value: &[u8]) -> Arc<[u8]> {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        match self.0.get(hash) {
            Some(known) if *known == *value => known,
            _ => {
                let shared: Arc<[u8]> = value.into();
                self.0.insert(hash, &shared);
                shared
            }
        }
    }
}

/// What is in use somewhere, by hash.
struct Table<T: ?Sized> {
    by_hash: HashMap<u64, Weak<T>>,
    /// When there are so many, those that are no longer in use are forgotten.
    review_at: usize,
}

impl<T: ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self {
            by_hash: HashMap::new(),
            review_at: Self::FIRST_REVIEW,
        }
    }
}

impl<T: ?Sized> Table<T> {
    const FIRST_REVIEW: usize = 1024;

    fn get(&self, hash: u64) -> Option<Arc<T>> {
        self.by_hash.get(&hash).and_then(Weak::upgrade)
    }

    fn insert(&mut self, hash: u64, value: &Arc<T>) {
        if self.by_hash.len() >= self.review_at {
            self.by_hash.retain(|_, value| value.strong_count() > 0);
            self.review_at = Self::FIRST_REVIEW.max(self.by_hash.len() * 2);
        }
        self.by_hash.insert(hash, Arc::downgrade(value));
    }
}

/// Finds shapes by their hashes.
struct Shapes {
    table: Table<Shape>,
    /// Hashes that were met once, each at the place that it names; the latest there counts. Only
    /// what comes again is worth a shape.
    met: Box<[u64]>,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            table: Table::default(),
            met: vec![0; Self::MEMORY].into(),
        }
    }
}

impl Shapes {
    const MEMORY: usize = 4096;

    /// The one that is kept of all shapes that are equal to this one; nothing for the first.
    fn share(&mut self, hash: u64, shape: Shape) -> Option<Arc<Shape>> {
        if let Some(known) = self.table.get(hash) {
            // Another shape with the same hash is not worth the trouble.
            return (*known == shape).then_some(known);
        }
        let index = usize::try_from(hash % Self::MEMORY as u64).unwrap_or(0);
        if self.met[index] != hash {
            self.met[index] = hash;
            return None;
        }
        let shape = Arc::new(shape);
        self.table.insert(hash, &shape);
        Some(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::scan;
    use super::*;

    fn text(name: &str, time: &str, uid: &str) -> Vec<u8> {
        format!(
            r#"{{"metadata":{{"annotations":{{"about":"{name}, of course"}},"creationTimestamp":"{time}","labels":{{"app":"{name}","tier":"front"}},"managedFields":[{{"time":"{time}"}}],"name":"{name}","resourceVersion":"7","uid":"{uid}"}},"spec":{{"k:{{\"uid\":\"{uid}\"}}":{{}},"host":"node-of-{name}.example","size":12}}}}"#
        )
        .into_bytes()
    }

    const UIDS: [&str; 2] = [
        "01234567-89ab-cdef-0123-456789abcdef",
        "76543210-89ab-cdef-0123-456789abcdef",
    ];

    #[test]
    fn objects_that_differ_in_names_uids_and_times_have_one_shape() {
        let texts = [
            text("one", "2026-01-31T12:00:00Z", UIDS[0]),
            text("twenty-two", "2026-12-01T01:02:03.000004Z", UIDS[1]),
        ];
        let [(one, _), (other, values)] = texts
            .each_ref()
            .map(|text| split(text, &scan(text).tokens).unwrap());
        assert_eq!(one, other);
        let values = Values::new(&values);
        let mut written = Vec::new();
        one.write(&values, 0, &mut written);
        assert_eq!(written, texts[1]);
        assert_eq!(one.length(&values), texts[1].len());
        assert_eq!(one.uid(&values), UIDS[1].as_bytes());
        assert_eq!(one.label("app", &values), Some(&b"twenty-two"[..]));
        assert_eq!(one.label("tier", &values), Some(&b"front"[..]));
        assert_eq!(one.label("none", &values), None);
    }

    #[test]
    fn a_version_is_replaced_by_a_longer_one() {
        let text = text("one", "2026-01-31T12:00:00Z", UIDS[0]);
        let (shape, values) = split(&text, &scan(&text).tokens).unwrap();
        let values = Values::new(&values).with_version("12345");
        let mut written = Vec::new();
        shape.write(&values, 1, &mut written);
        let written = String::from_utf8(written).unwrap();
        assert!(written.starts_with("\"metadata\""));
        assert!(written.contains(r#""resourceVersion":"12345","uid":"01"#));
    }

    #[test]
    fn only_what_comes_again_is_shared_and_only_while_it_is_in_use() {
        let mut shapes = Shapes::default();
        let text = text("one", "2026-01-31T12:00:00Z", UIDS[0]);
        let shape = || split(&text, &scan(&text).tokens).unwrap().0;
        assert!(shapes.share(5, shape()).is_none());
        let second = shapes.share(5, shape()).unwrap();
        let third = shapes.share(5, shape()).unwrap();
        assert!(Arc::ptr_eq(&second, &third));
        drop((second, third));
        shapes.table.review_at = 1;
        shapes.share(6, shape());
        shapes.share(6, shape());
        assert!(shapes.table.by_hash.keys().eq([&6]));
    }

    #[test]
    fn values_of_any_length_are_kept_and_long_ones_shared() {
        let long = vec![b'x'; 40_000];
        let values: [&[u8]; 6] = [b"1", b"", &long[..255], &long[..256], b"y", &long];
        let kept = Values::new(&values);
        assert!(kept.iter().eq(values));
        assert_eq!(kept.nth(3), &long[..256]);
        let other = Values::new(&values).with_version("23");
        assert!(other.iter().skip(1).eq(values.into_iter().skip(1)));
        assert_eq!(other.nth(0), b"23");
        assert!(Arc::ptr_eq(&kept.long[1].1, &other.long[1].1));
    }

    #[test]
    fn numbers_are_told_from_versions() {
        for (value, found) in [
            ("", false),
            ("v1", false),
            ("rbac.authorization.k8s.io/v1", false),
            ("FieldsV1", false),
            ("cluster7", true),
            ("256Gi", true),
            ("2026-01-31T12:00:00Z", true),
        ] {
            assert_eq!(has_number(value.as_bytes()), found, "{value}");
        }
    }

    #[test]
    fn words_are_found_whole() {
        for (value, word, found) in [
            ("a:b", "b", true),
            ("a:bc", "b", false),
            ("cb", "b", false),
            ("cb-b", "b", true),
            ("b", "", false),
            ("", "b", false),
        ] {
            assert_eq!(
                has_word(value.as_bytes(), word.as_bytes()),
                found,
                "{value} {word}"
            );
        }
    }
}
