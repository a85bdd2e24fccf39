//! Names of fields as expressions write them. A JSON field such as `x-kubernetes` or
//! `namespace` is no identifier, so Kubernetes spells it `x__dash__kubernetes`, `__namespace__`.

use std::borrow::Cow;

/// Words that expressions cannot use as field names.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name under which expressions see the field `name`; none if they cannot see it.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    let first = name.chars().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.chars().all(|c| plain(c) || "-./".contains(c)) {
        return None;
    }
    if name.chars().all(plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let (replacement, length) = match character {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            _ => (&rest[..1], 1),
        };
        escaped.push_str(replacement);
        rest = &rest[length..];
    }
    Some(Cow::Owned(escaped))
}

/// The escaped form of a reserved word; none for other names.
pub(crate) fn reserved(name: &str) -> Option<String> {
    RESERVED.contains(&name).then(|| format!("__{name}__"))
}

/// The field that expressions call `escaped`; none if no field has that name.
pub fn unescape(escaped: &str) -> Option<Cow<'_, str>> {
    if !escaped.contains("__") {
        return Some(Cow::Borrowed(escaped));
    }
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(start) = rest.find("__") {
        let after = &rest[start + 2..];
        let Some(length) = after.find('_').filter(|length| *length > 0) else {
            // Underscores that open nothing stand for themselves.
            let keep = start + 1;
            name.push_str(&rest[..keep]);
            rest = &rest[keep..];
            continue;
        };
        if !after[length..].starts_with("__") {
            let keep = start + 2 + length;
            name.push_str(&rest[..keep]);
            rest = &rest[keep..];
            continue;
        }
        name.push_str(&rest[..start]);
        match &after[..length] {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            word if RESERVED.contains(&word) => {
                // A reserved word is escaped only if it is the whole name.
                if word.len() + 4 != escaped.len() {
                    return None;
                }
                name.push_str(word);
            }
            _ => return None,
        }
        rest = &after[length + 2..];
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_escaped_as_kubernetes_does() {
        for (name, escaped) in [
            ("plain", "plain"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("namespace", "__namespace__"),
            ("_a", "_a"),
        ] {
            assert_eq!(escape(name).unwrap(), escaped);
            assert_eq!(unescape(escaped).unwrap(), name);
        }
        assert_eq!(escape(""), None);
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(unescape("a__what__b"), None);
        assert_eq!(unescape("a__namespace__"), None);
    }

    proptest! {
        #[test]
        fn unescape_undoes_escape(name in "[a-zA-Z_][a-zA-Z0-9_./-]{0,12}") {
            if let Some(escaped) = escape(&name) {
                // Three underscores in a row are ambiguous in Kubernetes' scheme too.
                prop_assume!(!name.contains("___") && !name.ends_with("__"));
                let back = unescape(&escaped);
                prop_assert_eq!(back.as_deref(), Some(name.as_str()));
            }
        }

        #[test]
        fn unescape_never_panics(name in ".{0,20}") {
            let _ = unescape(&name);
            let _ = escape(&name);
        }
    }
}
