//! Cases of our own, on a small cluster.

use bellwether_template::{NOWHERE, World};
use serde_json::{Value as Json, json};

use super::probe::answer;
use super::{Context, Keys, ManagedContext, Question, Request, Resolved, Source, resolve};

const OBJECTS: [&str; 4] = [
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: net, namespace: ops}, data: {mtu: '1500', motd: \"hi\\nthere\\n\"}}",
    "{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: ops}, data: {pem: eHl6}}",
    "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {node-role.kubernetes.io/infra: '', node-role.kubernetes.io/worker: ''}}}",
    "{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: c1, labels: {zone: a}}}",
];

fn world() -> World<'static> {
    NOWHERE
}

fn ask(mut case: Json) -> Json {
    case["objects"] = json!(OBJECTS);
    serde_json::from_str(&answer(&case.to_string(), &world())).unwrap()
}

fn managed(template: &Json) -> Json {
    ask(json!({"side": "managed", "template": template}))
}

fn hub(template: &Json, options: &Json) -> Json {
    let policy = json!({"name": "p", "namespace": "ops"});
    let context = json!({"ManagedClusterName": "c1", "PolicyMetadata": policy});
    ask(json!({"side": "hub", "template": template, "context": context, "options": options}))
}

#[test]
fn quotes_stay_unless_the_value_is_no_string() {
    let found = managed(&json!({
        "text": "{{ fromConfigMap \"ops\" \"net\" \"mtu\" }}",
        "number": "{{ fromConfigMap \"ops\" \"net\" \"mtu\" | toInt }}",
        "copy": "{{ copyConfigMapData \"ops\" \"net\" }}",
    }));
    let copy = json!({"mtu": "1500", "motd": "hi\nthere\n"});
    let expected = json!({"text": "1500", "number": 1500, "copy": copy});
    assert_eq!(found["value"], expected, "{found}");
}

#[test]
fn autoindent_keeps_the_column_of_its_template() {
    let found =
        managed(&json!({"a": "b:\n  {{ fromConfigMap \"ops\" \"net\" \"motd\" | autoindent }}\n"}));
    assert_eq!(
        found["value"],
        json!({"a": "b:\n  hi\n  there\n"}),
        "{found}"
    );
    let found = managed(&json!({"a": {"b": "{{ \"x\\ny\" | autoindent }}"}}));
    assert_eq!(found["value"], json!({"a": {"b": "x y"}}), "{found}");
}

#[test]
fn text_after_the_first_document_is_not_read() {
    let options = json!({"raw": true});
    for (template, value) in [
        ("{{ list 1 2 }} {{ list 3 }}", json!(["1 2"])),
        ("a: 1\n---\nb: {{ 2 }}", json!({"a": 1})),
        ("{{ quote \"x\" 2 }}", json!("x")),
        ("{{ squote \"x\" 2 }}", json!("x")),
        ("{{ toJson \"x\" }} {{ toJson (list 1) }}", json!("x")),
        ("{{ toJson (list 3) }}}", json!([3])),
        ("{{/* nothing */}}", Json::Null),
    ] {
        let case = json!({"side": "managed", "template": template, "options": options});
        let found = ask(case);
        assert_eq!(found["value"], value, "{found}");
    }
}

#[test]
fn texts_of_several_lines_stay_as_they_are() {
    for (definition, value) in [
        ("build:\n\tcc {{ \"main.c\" }}\n", "build:\n\tcc main.c\n"),
        ("one\n{{ \"two\" -}}\n", "one\ntwo"),
        // The writer of YAML loses this line break.
        ("\n{{ 8 }}", "8"),
    ] {
        let found = managed(&json!({"v": definition}));
        assert_eq!(found["value"], json!({"v": value}), "{found}");
    }
    let case =
        json!({"side": "managed", "template": "v: |\n  {{ \"x\" }}", "options": {"raw": true}});
    assert_eq!(ask(case)["value"], json!({"v": "x"}));
}

#[test]
fn yaml_has_the_types_of_go() {
    for (template, text) in [
        ("{{ fromJson \"[20000000]\" | toYaml }}", "- 2e+07"),
        (
            "{{ toYaml \"x\\n\\n\" | printf \"%q\" }}",
            "\"|+\\n  x\\n\"",
        ),
        (
            "{{ (fromYaml \"d: 2021-03-04\").d }}",
            "2021-03-04 00:00:00 +0000 UTC",
        ),
        ("{{ (fromYaml \"d: 2021-03-04\").d.Year }}", "2021"),
        ("{{ (fromYaml \"f: -.inf\").f }}", "-Inf"),
        (
            "{{ fromYaml \"{2: b, true: c, 1: a, k: d}\" }}",
            "map[k:d 1:a 2:b true:c]",
        ),
        (
            "{{ fromYaml \"{1: a}\" | typeOf }}",
            "map[interface {}]interface {}",
        ),
        ("{{ fromYaml \"{1: a}\" | toJson }}", ""),
        ("{{ fromYaml \"18446744073709551615\" | typeOf }}", "uint64"),
    ] {
        let found = ask(json!({"side": "managed", "template": template, "options": {"raw": true}}));
        assert_eq!(found["text"], text, "{found}");
    }
}

#[test]
fn numbers_keep_their_digits_and_json_its_limits() {
    for (template, value) in [
        (
            "n: 12345678901234567890",
            json!({"n": 12_345_678_901_234_567_890_u64}),
        ),
        ("n: {{ 2.5e19 }}", json!({"n": 2.5e19})),
        ("n: 1e3", json!({"n": 1000})),
    ] {
        let found = ask(json!({"side": "managed", "template": template, "options": {"raw": true}}));
        assert_eq!(found["value"], value, "{found}");
    }
    let case =
        json!({"side": "managed", "template": "-9223372036854775809", "options": {"raw": true}});
    let line = answer(&case.to_string(), &world());
    assert!(line.contains("\"value\":-9223372036854776000"), "{line}");
    for (template, problem) in [
        ("n: .nan", "json: unsupported value: NaN"),
        (
            "1: n",
            "json: unsupported type: map[interface {}]interface {}",
        ),
    ] {
        let found = ask(json!({"side": "managed", "template": template, "options": {"raw": true}}));
        let expected = format!("failed to convert the resolved template to JSON: {problem}");
        assert_eq!(found["error"], expected);
    }
}

#[test]
fn restricted_templates_see_their_namespace_and_cluster() {
    let read = |template: &str| hub(&json!({"v": template}), &json!({}));
    let found = read(
        "{{hub fromConfigMap \"\" \"net\" \"mtu\" hub}} {{hub .ManagedClusterLabels.zone hub}}",
    );
    assert_eq!(found["value"], json!({"v": "1500 a"}), "{found}");
    for (template, problem) in [
        (
            "{{hub lookup \"v1\" \"Pod\" \"kube-system\" \"\" hub}}",
            "the namespace argument is restricted to ops",
        ),
        (
            "{{hub lookup \"v1\" \"Node\" \"\" \"n1\" hub}}",
            "lookup of cluster-scoped resource 'Node/n1' is not allowed",
        ),
    ] {
        let found = read(template);
        let error = found["error"].as_str().unwrap();
        assert!(error.ends_with(problem), "{error}");
    }
}

#[test]
fn what_the_hub_encrypts_a_cluster_decrypts() {
    let mut options = json!({"encrypt": true, "key": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "iv": "MDEyMzQ1Njc4OWFiY2RlZg=="});
    let found = hub(
        &json!({"v": "{{hub fromSecret \"\" \"tls\" \"pem\" hub}}"}),
        &options,
    );
    assert_eq!(found["sensitive"], true);
    let sealed = found["value"]["v"].as_str().unwrap();
    assert!(sealed.starts_with(super::PREFIX), "{sealed}");
    options["encrypt"] = json!(false);
    options["decrypt"] = json!(true);
    let case = json!({"side": "managed", "template": {"v": sealed}, "options": options});
    let found = ask(case);
    assert_eq!(
        (&found["value"]["v"], &found["sensitive"]),
        (&json!("eHl6"), &json!(true))
    );
}

#[test]
fn the_key_before_is_tried_and_keys_are_checked() {
    let keys = |key: u8, previous| Keys::new(Some(vec![key; 32]), previous, Some(&[7; 16]));
    let sealed = keys(1, None).unwrap().encrypt(b"plain").unwrap();
    let sealed = sealed.strip_prefix(super::PREFIX).unwrap();
    let rotated = keys(2, Some(vec![1; 32])).unwrap();
    assert_eq!(rotated.decrypt(sealed).unwrap(), "plain");
    assert!(keys(2, None).unwrap().decrypt(sealed).is_err());
    assert!(rotated.decrypt("YWJj").is_err());
    let short = Keys::new(Some(vec![1; 5]), None, Some(&[7; 16])).unwrap_err();
    assert_eq!(
        short.to_string(),
        "the AES key is invalid: crypto/aes: invalid key size 5"
    );
}

#[test]
fn functions_that_are_denied_say_so() {
    let options = json!({"raw": true, "denyFunctions": ["lower"]});
    for (template, end) in [
        (
            "{{ expandenv \"x\" }}",
            "function 'expandenv' is considered a security risk",
        ),
        ("{{ lower \"X\" }}", "function 'lower' is not allowed"),
    ] {
        let found = ask(json!({"side": "managed", "template": template, "options": options}));
        let error = found["error"].as_str().unwrap();
        assert!(error.ends_with(end), "{error}");
    }
}

#[test]
fn the_role_of_a_worker_does_not_count() {
    let found = managed(
        &json!({"v": "{{ range (getNodesWithExactRoles \"infra\").items }}{{ .metadata.name }}{{ end }} {{ hasNodesWithExactRoles \"gpu\" }}"}),
    );
    assert_eq!(found["value"]["v"], "n1 false", "{found}");
}

#[test]
fn an_object_is_skipped_where_the_template_says_so() {
    let context = json!({"ObjectName": "x"});
    for (argument, skipped) in [("true", json!(true)), ("false", Json::Null)] {
        let template =
            json!({"v": format!("{{{{ skipObject {argument} }}}}{{{{ .ObjectName }}}}")});
        let found = ask(json!({"side": "managed", "template": template, "context": context}));
        assert_eq!(
            (&found["value"]["v"], &found["skipped"]),
            (&json!("x"), &skipped)
        );
    }
}

#[test]
fn nothing_of_a_context_is_an_empty_map() {
    let template = json!({"v": "{{ .Object | toYaml }}"});
    let found =
        ask(json!({"side": "managed", "template": template, "context": {"ObjectName": "x"}}));
    assert_eq!(found["value"]["v"], "{}", "{found}");
}

#[test]
fn the_context_keeps_the_order_of_its_fields() {
    let context = json!({"ObjectName": "x", "ObjectNamespace": "y"});
    let found =
        ask(json!({"side": "managed", "template": {"v": "{{ toJson . }}"}, "context": context}));
    let expected = r#"{"Object":null,"ObjectNamespace":"y","ObjectName":"x"}"#;
    assert_eq!(found["value"]["v"], expected, "{found}");
}

#[test]
fn what_is_not_known_is_asked_for() {
    let request = Request {
        context: Context::Managed(ManagedContext::default()),
        source: Source::Raw("{{ fromClusterClaim \"region\" }}".to_owned()),
        restriction: None,
        encrypt: None,
        decrypt: None,
        denied: Vec::new(),
    };
    let nothing = std::collections::BTreeMap::new();
    let question = Question::Resource {
        api_version: "cluster.open-cluster-management.io/v1alpha1".to_owned(),
        kind: "ClusterClaim".to_owned(),
    };
    let resolved = resolve(&request, &nothing, &world());
    assert_eq!(resolved, Resolved::Needs(vec![question]));
}
