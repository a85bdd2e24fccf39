//! sprig against what sprig 3.3 made of the same templates, with Go 1.26.

use bellwether_go::value::Value;
use serde_json::json;

use crate::{Budget, Functions, NoFacts, Options, Phase, Rendered, Set, World, guessable_bytes};

/// A template and its output, or its error after `ERR `, a line.
const CASES: &str = include_str!("../../testdata/sprig.jsonl");

fn data() -> Value {
    Value::from_json(&json!({
        "s": "hello", "n": 3, "f": 1.5, "big": 1_000_000, "yes": true, "nul": null,
        "list": ["a", "b", "c"], "empty": [], "map": {"b": 2, "a": 1, "c": {"d": "deep"}},
        "mixed": [1, "x", true, null, 2.5],
    }))
}

fn world() -> World<'static> {
    World {
        facts: &NoFacts,
        now: "2024-05-06T07:08:09Z".parse().unwrap(),
        random: &guessable_bytes,
    }
}

fn render(template: &str, budget: &mut Budget) -> Result<String, crate::TemplateError> {
    let mut set = Set::new(Options::new(Functions::sprig()));
    set.add("t", template)?;
    match set.render("t", &data(), &world(), budget)? {
        Rendered::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Rendered::Needs(needs) => panic!("{template}: {needs:?}"),
    }
}

#[test]
fn functions_give_what_sprig_gives() {
    let mut wrong = Vec::new();
    for line in CASES.lines() {
        let (template, expected): (String, String) = serde_json::from_str(line).unwrap();
        let output = match render(&template, &mut Budget::default()) {
            Ok(output) => output,
            Err(error) => format!("ERR {error}"),
        };
        if output != expected {
            wrong.push(format!(
                "{template}\n  got  {output:?}\n  want {expected:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn certificates_are_signed_by_their_authority() {
    let template = r#"{{ $ca := genCA "root" 10 }}{{ $c := genSignedCert "web" (list "10.0.0.1") (list "web.test") 5 $ca }}{{ $ca.Cert }}{{ $c.Cert }}{{ $c.Key }}"#;
    let text = render(template, &mut Budget::default()).unwrap();
    assert!(text.contains("-----BEGIN RSA PRIVATE KEY-----\n"));
    let ders: Vec<_> = x509_parser::pem::Pem::iter_from_buffer(text.as_bytes())
        .map(Result::unwrap)
        .filter(|pem| pem.label == "CERTIFICATE")
        .collect();
    let [authority, certificate] = ders.as_slice() else {
        panic!("{text}");
    };
    let authority = authority.parse_x509().unwrap();
    let certificate = certificate.parse_x509().unwrap();
    assert_eq!(certificate.issuer(), authority.subject());
    assert!(authority.is_ca() && !certificate.is_ca());
    certificate
        .verify_signature(Some(authority.public_key()))
        .unwrap();
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 2);
}

#[test]
fn keys_of_every_kind_sign_certificates() {
    for kind in ["ecdsa", "ed25519"] {
        let template = format!(
            r#"{{{{ $k := genPrivateKey "{kind}" }}}}{{{{ (genCAWithKey "root" 1 $k).Cert }}}}"#
        );
        let text = render(&template, &mut Budget::default()).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        certificate.verify_signature(None).unwrap();
    }
}

#[test]
fn what_was_encrypted_is_decrypted() {
    let text = render(
        r#"{{ "plain" | encryptAES "key" | decryptAES "key" }}"#,
        &mut Budget::default(),
    );
    assert_eq!(text.unwrap(), "plain");
}

#[track_caller]
fn check_stopped(template: &str) {
    let mut budget = Budget {
        steps: 1_000_000,
        bytes: 10_000_000,
        depth: 100,
    };
    let error = render(template, &mut budget).unwrap_err();
    assert_eq!(error.phase(), Phase::Budget, "{template}: {error}");
}

#[test]
fn no_function_runs_on() {
    check_stopped(r#"{{ repeat 2000000000 "x" }}"#);
    check_stopped(r"{{ until 2000000000 }}");
    check_stopped(r"{{ untilStep 0 9000000000000000000 1 }}");
    check_stopped(r"{{ seq 2000000000 }}");
    check_stopped(r#"{{ indent 2000000000 "x" }}"#);
    check_stopped(r#"{{ replace "" (repeat 100000 "x") (repeat 100000 "y") }}"#);
    check_stopped(r"{{ randAlphaNum 2000000000 }}");
    check_stopped(r#"{{ regexReplaceAll "(a)" (repeat 100000 "a") (repeat 1000 "$1") }}"#);
    check_stopped(r"{{ $l := until 3000 }}{{ range 1000 }}{{ $l = uniq $l }}{{ end }}");
    check_stopped(r"{{ range 100 }}{{ genCA $.s 1 }}{{ end }}");
    check_stopped(r"{{ $l := list 1 }}{{ range 100 }}{{ $l = concat $l $l }}{{ end }}");
    check_stopped(
        r#"{{ $d := dict }}{{ range 100000 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toJson $d }}"#,
    );
}

#[test]
fn a_map_may_hold_itself() {
    let text = render(
        r#"{{ $d := dict "a" 1 }}{{ $_ := set $d "self" $d }}{{ $d.self.self.a }}"#,
        &mut Budget::default(),
    );
    assert_eq!(text.unwrap(), "1");
    let text = render(
        r#"{{ $d := dict }}{{ $_ := set $d "self" $d }}[{{ toJson $d }}]"#,
        &mut Budget::default(),
    );
    assert_eq!(text.unwrap(), "[]");
}

#[test]
fn values_nested_deeper_than_the_stack_are_dropped() {
    let text = render(
        r"{{ $l := list }}{{ range 200000 }}{{ $l = list $l }}{{ end }}{{ len $l }}",
        &mut Budget::default(),
    );
    assert_eq!(text.unwrap(), "1");
}

#[test]
fn limits_and_messages_are_those_of_go() {
    let rendered = |template: &str| render(template, &mut Budget::default());
    for (template, expected) in [
        (
            r#"{{ atoi "-99999999999999999999" }}"#,
            "-9223372036854775808",
        ),
        (
            r#"{{ typeIsLike "*int" 3 }} {{ typeIsLike "int" 3 }}"#,
            "false true",
        ),
        (
            r#"{{ b64dec "YWI=tail" }}"#,
            "illegal base64 data at input byte 4",
        ),
    ] {
        assert_eq!(rendered(template).unwrap(), expected, "{template}");
    }
    for (template, end) in [
        (
            "{{ eq (list 2) (list 2) }}",
            "non-comparable type [%!s(int=2)]: []interface {}",
        ),
        (
            r#"{{ semverCompare "odd" "1.0.0" }}"#,
            r#"improper constraint: "odd""#,
        ),
    ] {
        let error = rendered(template).unwrap_err().to_string();
        assert!(error.ends_with(end), "{error}");
    }
}
