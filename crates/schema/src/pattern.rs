//! Patterns of schemas: regular expressions in Go's dialect.

use bellwether_go::regexp::Regex;

/// Compiles an expression written for Go; the error is what Go says of it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|problem| format!("error parsing regexp: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_expressions_match_as_in_go() {
        let cases = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢٣", false),
            (r"^\w+$", "naïve", false),
            (r"\bfoo\b", "éfoo", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^{a}$", "{a}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}b{1,2}$", "aaabb", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
            (r"^(?P<x>a|b)$", "b", true),
            (r"^https?:\/\/.*$", "http://x", true),
            (r#"^\"\'\-\_$"#, "\"'-_", true),
            ("b", "abc", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\p{Greek}$", "\u{3b1}", true),
            (r"^\x{41}$", "A", true),
            (r"^\<$", "<", true),
        ];
        for (pattern, text, expected) in cases {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn broken_expressions_are_refused_as_go_does() {
        let cases = [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<=a)", "invalid named capture: `(?<=a)`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a\\", "trailing backslash at end of expression: ``"),
        ];
        for (pattern, expected) in cases {
            let error = compile(pattern).unwrap_err();
            assert_eq!(error, format!("error parsing regexp: {expected}"));
        }
    }
}
