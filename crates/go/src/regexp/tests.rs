use proptest::prelude::*;

use super::Regex;

#[track_caller]
fn check(pattern: &str, text: &str, expected: bool) {
    let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    assert_eq!(regex.is_match(text), expected, "{pattern} on {text:?}");
}

#[test]
fn search_is_unanchored_and_anchors_bind_to_the_text() {
    check("b+", "abbc", true);
    check("^b", "ab", false);
    check("a$", "a\n", false);
    check("(?m)a$", "a\nb", true);
    check("^$", "", true);
    check(".", "\n", false);
    check("(?s).", "\n", true);
}

#[test]
fn perl_classes_are_ascii() {
    check(r"^\d$", "٣", false);
    check(r"^\w+$", "aZ_9", true);
    check(r"^\w$", "é", false);
    check(r"^\s$", "\x0b", false);
    check(r"^[\d-]+$", "12-3", true);
    check(r"^[^\s]$", "x", true);
    check(r"\bfoo\b", "a foo b", true);
    check(r"^\PL$", "1", true);
    check(r"^\p{Greek}+$", "αβγ", true);
    check(r"^[\p{Lu}]$", "É", true);
}

#[test]
fn class_punctuation_is_literal() {
    check("^[[]$", "[", true);
    check("^[]a]+$", "]a", true);
    check("^[a&&b]+$", "a&b", true);
    check("^[+--]$", ",", true);
    check("^[~~]$", "~", true);
    check("^[[:alpha:]_]+$", "ab_", true);
    check("^[a-c-e]+$", "b-e", true);
}

#[test]
fn malformed_counts_are_literal_text() {
    check("^a{,2}$", "a{,2}", true);
    check("^a{$", "a{", true);
    check("^a{2}$", "aa", true);
    check("^a{2,}?$", "aaa", true);
    check("^x{01}$", "x{01}", true);
}

#[test]
fn escapes_stand_for_characters() {
    check(r"^\x41\x{1F600}\101\t$", "A\u{1F600}A\t", true);
    check(r"^\Qa.b*\E+$", "a.b**", true);
    check(r"^\-\/\#$", "-/#", true);
    check("^a#b c$", "a#b c", true);
}

#[track_caller]
fn check_error(pattern: &str, expected: &str) {
    assert_eq!(Regex::new(pattern).unwrap_err(), expected, "{pattern}");
}

#[test]
fn invalid_patterns_are_named_in_the_words_of_the_dialect() {
    check_error("[a", "missing closing ]: `[a`");
    check_error("(a", "missing closing ): `(a`");
    check_error("a)", "unexpected ): `a)`");
    check_error("*a", "missing argument to repetition operator: `*`");
    check_error("a**", "invalid nested repetition operator: `**`");
    check_error("a|*", "missing argument to repetition operator: `*`");
    check_error("a{1001}", "invalid repeat count: `{1001}`");
    check_error("[z-a]", "invalid character class range: `z-a`");
    check_error("[[:foo:]]", "invalid character class range: `[:foo:]`");
    check_error(r"\8", r"invalid escape sequence: `\8`");
    check_error(r"\C", r"invalid escape sequence: `\C`");
    check_error("a\\", "trailing backslash at end of expression: ``");
    check_error("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
    check_error("(?P<n>a)(?P<n>b)", "duplicate capture group name: `n`");
}

#[test]
fn groups_and_replacements_are_available_to_builtins() {
    let regex = Regex::new(r"(?P<key>\w+)=(?<value>\w*)").unwrap();
    assert_eq!(regex.find_all("a=1 b=2", usize::MAX), ["a=1", "b=2"]);
    assert_eq!(regex.find_all_groups("a=1", 1), [["a=1", "a", "1"]]);
    assert_eq!(regex.group_names(), [None, Some("key"), Some("value")]);
    assert_eq!(regex.replace_all("a=1", "${value}<-$key"), "1<-a");
    assert_eq!(regex.replace_all_literal("a=1", "$key"), "$key");
}

proptest! {
    #[test]
    fn no_pattern_makes_the_compiler_panic(pattern in r"[\[\](){}|*+?.^$\\a-cdDwWpPQEx0-9,:<>=!-]{0,24}") {
        let _ = Regex::new(&pattern);
    }

    #[test]
    fn quoted_text_matches_itself(text in "[^\\\\]{0,12}") {
        let regex = Regex::new(&format!(r"^\Q{text}\E$")).unwrap();
        prop_assert!(regex.is_match(&text));
    }
}

/// What copies of this module once disagreed about; the answers are those of Go 1.26.
#[test]
fn classes_and_escapes_are_those_of_go() {
    check(r"^\p{Greek}$", "\u{3b1}", true);
    check(r"^\P{Greek}$", "\u{3b1}", false);
    check(r"^\x{41}\x42$", "AB", true);
    check(r"^\<\>$", "<>", true);
    for refused in ["(?x)a", "(?-u:a)", "(?=a)"] {
        assert!(Regex::new(refused).is_err(), "{refused}");
    }
}
