//! Finding the strings of a stored text, and what those of its metadata say.
//!
//! The text is our own: valid, without spaces, with at most one `metadata`.

/// A part of a text: from one offset to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        // Requests are limited to a few megabytes.
        let clamp = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            start: clamp(start),
            end: clamp(end),
        }
    }

    /// That part of the text.
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// What a string of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The key of a field.
    Key,
    /// Any value.
    Value,
    /// `metadata.name` or `metadata.namespace`.
    Name,
    /// `metadata.uid`.
    Uid,
    /// `metadata.resourceVersion`.
    Version,
    /// `metadata.deletionTimestamp`.
    Deletion,
    /// A key of `metadata.labels`.
    LabelKey,
    /// A value of `metadata.labels`.
    LabelValue,
}

/// A string of a text, without its quotes and with its escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) span: Span,
    pub(super) role: Role,
}

/// The strings of a text in order, and where its `metadata.ownerReferences` are.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) tokens: Vec<Token>,
    pub(super) owners: Option<Span>,
}

impl Scan {
    /// What is found after so many bytes have been inserted at an offset, which is the place of an
    /// empty string or between strings.
    pub(super) fn shifted(mut self, offset: usize, length: usize) -> Self {
        let Span {
            start: offset,
            end: length,
        } = Span::new(offset, length);
        let spans = self.tokens.iter_mut().map(|token| &mut token.span);
        for span in spans.chain(&mut self.owners) {
            if span.start > offset {
                span.start = span.start.saturating_add(length);
            }
            if span.end >= offset {
                span.end = span.end.saturating_add(length);
            }
        }
        self
    }
}

/// Reads a text.
pub(super) fn scan(text: &[u8]) -> Scan {
    let mut found = Scan {
        tokens: Vec::with_capacity(text.len() / 16),
        owners: None,
    };
    let mut place = Place::default();
    let mut position = 0;
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => {
                let start = position + 1;
                let end = end_of_string(text, start);
                let is_key = text.get(end + 1) == Some(&b':');
                let role = place.role(&text[start..end], is_key);
                let span = Span::new(start, end);
                found.tokens.push(Token { span, role });
                position = end;
            }
            b'{' | b'[' => {
                place.depth += 1;
                if place.is_owners() {
                    place.owners_from = position;
                }
            }
            b'}' | b']' => {
                if place.is_owners() {
                    found.owners = Some(Span::new(place.owners_from, position + 1));
                }
                place.depth = place.depth.saturating_sub(1);
            }
            _ => {}
        }
        position += 1;
    }
    found
}

/// The value of a field of an object in its text: for reading a part of an object without the rest.
pub(crate) fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (mut depth, mut position) = (0_usize, 0);
    // Where the value begins, once it has been found.
    let mut start = None;
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => {
                let end = end_of_string(text, position + 1);
                let is_key = depth == 1 && text.get(end + 1) == Some(&b':');
                if is_key && text.get(position + 1..end) == Some(name.as_bytes()) {
                    start = Some(end + 2);
                }
                position = end;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A value ends where the next field begins, or the object ends.
        let ends = (depth == 1 && *byte == b',') || depth == 0;
        if let Some(start) = start.filter(|_| ends) {
            return text.get(start..position);
        }
        position += 1;
    }
    None
}

/// Where a value ends that begins at a position.
pub(super) fn end_of_value(text: &[u8], start: usize) -> usize {
    let (mut depth, mut position) = (0_usize, start);
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => position = end_of_string(text, position + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return position,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        position += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return position;
        }
    }
    text.len()
}

/// Where the quote is that ends a string.
pub(super) fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => return position,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    text.len()
}

/// Where a scan is.
#[derive(Debug, Default)]
struct Place {
    /// How many objects and lists are open.
    depth: usize,
    in_metadata: bool,
    field: Field,
    /// Where the list of owners began.
    owners_from: usize,
}

/// The last field of the metadata that was named.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Field {
    #[default]
    Other,
    Name,
    Uid,
    Version,
    Deletion,
    Labels,
    Owners,
}

impl Place {
    fn is_owners(&self) -> bool {
        self.in_metadata && self.field == Field::Owners && self.depth == 3
    }

    /// What a string is at this place, and what it says of those that follow.
    fn role(&mut self, text: &[u8], is_key: bool) -> Role {
        if is_key {
            match self.depth {
                1 => self.in_metadata = text == b"metadata",
                2 if self.in_metadata => self.field = Field::named(text),
                3 if self.in_metadata && self.field == Field::Labels => return Role::LabelKey,
                _ => {}
            }
            return Role::Key;
        }
        if !self.in_metadata {
            return Role::Value;
        }
        match (self.depth, self.field) {
            (2, Field::Name) => Role::Name,
            (2, Field::Uid) => Role::Uid,
            (2, Field::Version) => Role::Version,
            (2, Field::Deletion) => Role::Deletion,
            (3, Field::Labels) => Role::LabelValue,
            _ => Role::Value,
        }
    }
}

impl Field {
    fn named(text: &[u8]) -> Self {
        match text {
            b"name" | b"namespace" => Self::Name,
            b"uid" => Self::Uid,
            b"resourceVersion" => Self::Version,
            b"deletionTimestamp" => Self::Deletion,
            b"labels" => Self::Labels,
            b"ownerReferences" => Self::Owners,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_with_what_they_are() {
        let text = br#"{"data":{"labels":"x","uid":"\"y\\"},"metadata":{"deletionTimestamp":"t","labels":{"a":"1"},"name":"n","namespace":"s","ownerReferences":[{"name":"o","uid":"p"}],"resourceVersion":"","uid":"u"},"spec":{"metadata":{"name":"z","labels":{"b":"2"}}}}"#;
        let found = scan(text);
        let of = |role: Role| -> Vec<&str> {
            let tokens = found.tokens.iter().filter(|token| token.role == role);
            tokens
                .map(|token| std::str::from_utf8(token.span.of(text)).unwrap())
                .collect()
        };
        assert_eq!(of(Role::Value), ["x", r#"\"y\\"#, "o", "p", "z", "2"]);
        assert_eq!(of(Role::Name), ["n", "s"]);
        assert_eq!(of(Role::Uid), ["u"]);
        assert_eq!(of(Role::Version), [""]);
        assert_eq!(of(Role::Deletion), ["t"]);
        assert_eq!(
            (of(Role::LabelKey), of(Role::LabelValue)),
            (vec!["a"], vec!["1"])
        );
        let owners = found.owners.unwrap().of(text);
        assert_eq!(owners, br#"[{"name":"o","uid":"p"}]"#);
    }

    #[test]
    fn a_field_is_found_without_reading_the_others() {
        let text =
            br#"{"a":"b\"}","b":{"metadata":{},"c":[1,{}]},"metadata":{"name":"x"},"n":1,"z":"y"}"#;
        let find = |name| member(text, name).map(|value| std::str::from_utf8(value).unwrap());
        assert_eq!(find("metadata"), Some(r#"{"name":"x"}"#));
        assert_eq!(find("b"), Some(r#"{"metadata":{},"c":[1,{}]}"#));
        assert_eq!((find("n"), find("z")), (Some("1"), Some(r#""y""#)));
        assert_eq!(find("a"), Some(r#""b\"}""#));
        assert_eq!((find("c"), find("name")), (None, None));
        for text in [&b"{\"a"[..], b"{\"a\":", b"", b"\"", b"}}", b"{\"a\":[}"] {
            member(text, "a");
        }
    }

    #[test]
    fn values_end_where_the_next_begins() {
        for (text, length) in [
            ("1,2", 1),
            ("-1.5e3}", 6),
            ("true]", 4),
            (r#""a\"]","b""#, 6),
            (r#"{"a":[{"}":1}]},[]"#, 15),
            ("[],", 2),
            ("[[", 2),
        ] {
            assert_eq!(end_of_value(text.as_bytes(), 0), length, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_cut_off_is_read_to_its_end() {
        for text in [&b"{\"a"[..], b"{\"a\\", b"", b"\"", b"}}", b"{\"a\":[}"] {
            scan(text);
        }
    }
}
