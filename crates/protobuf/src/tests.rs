//! Tests of whole bodies.

mod encode;
mod sample;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Value, json};

use crate::table::{Kind, Presence, Shape, Table, table};
use crate::{DecodeError, MAX_DEPTH, MAX_VALUES, Reason, WireType, decode};
use encode::{bytes, double, envelope, number, text};

/// Bodies that client-go wrote, each with the JSON that Go prints for it.
const BODIES: &str = include_str!("../testdata/bodies.txt");

/// The JSON of an object of core/v1 or apps/v1 whose message has these fields.
#[track_caller]
fn check(kind: &str, fields: &[Vec<u8>], expected: &Value) {
    assert_eq!(decode(&body(kind, fields)).as_ref(), Ok(expected), "{kind}");
}

#[track_caller]
fn check_error(kind: &str, fields: &[Vec<u8>], expected: &str) {
    let error = decode(&body(kind, fields)).unwrap_err();
    assert_eq!(error.to_string(), expected, "{kind}");
}

fn body(kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let version = match kind {
        "Deployment" | "DaemonSet" | "ControllerRevision" => "apps/v1",
        "Lease" => "coordination.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        _ => "v1",
    };
    envelope(version, kind, &fields.concat())
}

/// A body and its JSON by line.
fn bodies() -> impl Iterator<Item = (Vec<u8>, Value)> {
    use base64::Engine;
    let lines = BODIES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (body, json) = line.split_once(' ').unwrap();
        let body = base64::engine::general_purpose::STANDARD.decode(body);
        (body.unwrap(), serde_json::from_str(json).unwrap())
    })
}

#[test]
fn bodies_of_client_go_are_read_as_go_prints_them() {
    assert!(bodies().count() > 10);
    for (body, expected) in bodies() {
        assert_eq!(decode(&body), Ok(expected));
    }
}

#[test]
fn absent_fields_show_as_go_shows_them() {
    check(
        "ConfigMap",
        &[],
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
    );
    check(
        "Deployment",
        &[],
        &json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {},
            "spec": {
                "selector": null,
                "template": {"metadata": {}, "spec": {"containers": null}},
                "strategy": {},
            },
            "status": {},
        }),
    );
}

#[test]
fn zero_values_on_the_wire_are_left_out_or_kept_as_the_field_says() {
    let metadata = [text(1, ""), text(3, ""), number(7, 0), bytes(8, &[])].concat();
    let spec = [number(1, 0), number(5, 0), number(9, 0)].concat();
    let object = decode(&body("Deployment", &[bytes(1, &metadata), bytes(2, &spec)])).unwrap();
    assert_eq!(object["metadata"], json!({}));
    assert_eq!(object["spec"]["replicas"], 0);
    assert_eq!(object["spec"]["progressDeadlineSeconds"], 0);
    assert_eq!(object["spec"].get("minReadySeconds"), None);
}

#[test]
fn inlined_messages_are_fields_of_the_object_around_them() {
    let source = bytes(
        19,
        &[bytes(1, &text(1, "settings")), number(3, 420)].concat(),
    );
    let volume = [text(1, "files"), bytes(2, &source)].concat();
    let spec = bytes(1, &volume);
    let object = decode(&body("Pod", &[bytes(2, &spec)])).unwrap();
    assert_eq!(
        object["spec"]["volumes"],
        json!([{"name": "files", "configMap": {"name": "settings", "defaultMode": 420}}])
    );
}

#[test]
fn bytes_are_base64_and_maps_may_lack_keys_and_values() {
    check(
        "Secret",
        &[
            bytes(2, &[text(1, "a"), bytes(2, &[0, 255])].concat()),
            bytes(2, &text(1, "b")),
            bytes(2, &bytes(2, b"x")),
            bytes(4, &text(1, "c")),
            number(5, 0),
        ],
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {},
            "data": {"a": "AP8=", "b": "", "": "eA=="},
            "stringData": {"c": ""},
            "immutable": false,
        }),
    );
}

#[test]
fn numbers_in_a_run_or_one_by_one_make_the_same_list() {
    let run = bytes(4, &[1, 0x96, 0x01]);
    let single = [number(4, 1), number(4, 150)].concat();
    for groups in [run, single] {
        let spec = bytes(2, &bytes(14, &groups));
        let object = decode(&body("Pod", &[spec])).unwrap();
        assert_eq!(
            object["spec"]["securityContext"]["supplementalGroups"],
            json!([1, 150])
        );
    }
    let spec = bytes(2, &bytes(14, &bytes(4, &[])));
    let object = decode(&body("Pod", &[spec])).unwrap();
    assert_eq!(object["spec"]["securityContext"], json!({}));
}

#[test]
fn parts_of_a_message_are_merged_and_the_last_scalar_wins() {
    let first = bytes(1, &[text(1, "one"), text(3, "shop")].concat());
    let second = bytes(1, &text(1, "two"));
    check(
        "ConfigMap",
        &[first, second],
        &json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "two", "namespace": "shop"},
        }),
    );
}

#[test]
fn unknown_fields_are_skipped_whatever_their_type() {
    let group = [
        vec![0xf3, 0x07],
        text(1, "x"),
        vec![0xfb, 0x07, 0xfc, 0x07, 0xf4, 0x07],
    ]
    .concat();
    check(
        "ConfigMap",
        &[
            text(1000, "new"),
            number(1001, 5),
            double(1002, 1.0),
            vec![0xfd, 0x07, 1, 2, 3, 4],
            group,
        ],
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
    );
}

#[test]
fn text_that_is_not_utf_8_is_replaced_byte_by_byte() {
    let object = decode(&body(
        "ConfigMap",
        &[bytes(1, &bytes(1, b"a\xff\xe4\xb8z"))],
    ))
    .unwrap();
    assert_eq!(object["metadata"]["name"], "a\u{fffd}\u{fffd}\u{fffd}z");
}

#[test]
fn negative_numbers_and_whole_floats_are_read_as_written() {
    let maximum = |number| {
        let schema = bytes(1, &[text(5, "number"), double(9, number)].concat());
        let version = [text(1, "v1"), bytes(4, &schema)].concat();
        let spec = bytes(2, &bytes(7, &version));
        decode(&body("CustomResourceDefinition", &[spec])).map(|object| {
            object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"].clone()
        })
    };
    assert_eq!(maximum(-7.0), Ok(json!(-7)));
    assert_eq!(maximum(0.25), Ok(json!(0.25)));
    assert_eq!(maximum(1e300), Ok(json!(1e300)));
    assert_eq!(maximum(1e20), Ok(json!(1e20)));
    assert_eq!(maximum(9e15), Ok(json!(9_000_000_000_000_000_i64)));
    assert_eq!(
        maximum(2_f64.powi(63)),
        Ok(json!(9_223_372_036_854_776_000_u64))
    );
    assert_eq!(maximum(-0.0), Ok(json!(-0.0)));
    assert!(maximum(f64::NAN).unwrap_err().to_string().ends_with(
        "at spec.versions.schema.openAPIV3Schema.maximum: the number is infinite or not a number"
    ));
    let revision = [bytes(2, &bytes(1, b"null")), number(3, u64::MAX)];
    let object = decode(&body("ControllerRevision", &revision)).unwrap();
    assert_eq!(object["revision"], -1);
    assert_eq!(object["data"], Value::Null);
}

#[test]
fn delete_options_belong_to_every_api_version() {
    let message = [number(1, 0), text(4, "Background")].concat();
    for version in ["v1", "apps/v1", "example.com/v1alpha1"] {
        assert_eq!(
            decode(&envelope(version, "DeleteOptions", &message)),
            Ok(json!({
                "apiVersion": version,
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Background",
            }))
        );
    }
}

#[test]
fn bodies_that_are_no_objects_say_why() {
    let check = |body: &[u8], expected: &str| {
        assert_eq!(decode(body).unwrap_err().to_string(), expected);
    };
    let no_prefix = "the body does not start with the prefix of Kubernetes protobuf, \"k8s\\0\"";
    check(b"", no_prefix);
    check(b"{\"kind\":\"Pod\"}", no_prefix);
    check(b"k8s", no_prefix);
    let untyped = "the protobuf body does not say its apiVersion and kind";
    check(b"k8s\0", untyped);
    check(&envelope("v1", "", &[]), untyped);
    check(&envelope("", "Pod", &[]), untyped);
    check(
        &envelope("apps/v1", "Pod", &[]),
        "the kind \"Pod\" of \"apps/v1\" has no known protobuf form",
    );
    check(
        b"k8s\0\x0a\x05",
        "the envelope of the protobuf body is malformed: it ends too early",
    );
    check(
        b"k8s\0\x08\x05",
        "the envelope of the protobuf body is malformed: \
         field 1 has the wire type varint instead of bytes",
    );
    let compressed = [envelope("v1", "Pod", &[]), text(3, "gzip")].concat();
    check(
        &compressed,
        "the contentEncoding \"gzip\" of the protobuf body is not supported",
    );
    let other = [envelope("v1", "Pod", &[]), text(4, "application/json")].concat();
    check(
        &other,
        "the contentType \"application/json\" of the protobuf body is not supported",
    );
    let usual = [envelope("v1", "Pod", &[]), text(4, crate::MEDIA_TYPE)].concat();
    assert!(decode(&usual).is_ok());
}

#[test]
fn damaged_objects_say_where_and_why() {
    check_error(
        "Pod",
        &[bytes(2, &bytes(2, &bytes(8, &number(1, 1))))],
        "Pod in protobuf is malformed at spec.containers.resources.limits: \
         field 1 has the wire type varint instead of bytes",
    );
    check_error(
        "Pod",
        &[bytes(2, &bytes(1, &bytes(2, &bytes(19, &[0x12]))))],
        "Pod in protobuf is malformed at spec.volumes.configMap.items: it ends too early",
    );
    check_error(
        "ConfigMap",
        &[bytes(2, &[text(1, "a.b"), number(2, 1)].concat())],
        "ConfigMap in protobuf is malformed at data[\"a.b\"]: \
         field 2 has the wire type varint instead of bytes",
    );
    check_error(
        "ConfigMap",
        &[vec![0x07]],
        "ConfigMap in protobuf is malformed at its top level: a tag is invalid",
    );
    check_error(
        "ConfigMap",
        &[vec![0xfc, 0x07]],
        "ConfigMap in protobuf is malformed at its top level: a tag is invalid",
    );
    check_error(
        "ConfigMap",
        &[vec![0xff; 12]],
        "ConfigMap in protobuf is malformed at its top level: a number is longer than 64 bits",
    );
    check_error(
        "ControllerRevision",
        &[bytes(2, &text(1, "{"))],
        "ControllerRevision in protobuf is malformed at data: the embedded JSON cannot be read: \
         EOF while parsing an object at line 1 column 1",
    );
    check_error(
        "DaemonSet",
        &[bytes(2, &bytes(3, &bytes(2, &bytes(1, &number(1, 2)))))],
        "DaemonSet in protobuf is malformed at spec.updateStrategy.rollingUpdate.maxUnavailable: \
         type 2 is neither a number (0) nor a string (1)",
    );
    check_error(
        "ConfigMap",
        &[bytes(1, &bytes(8, &number(1, 253_402_300_800)))],
        "ConfigMap in protobuf is malformed at metadata.creationTimestamp: \
         the time is out of range",
    );
}

/// A definition whose schema is wrapped so many times.
fn nested_schema(levels: usize, wrap: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut schema = text(5, "object");
    for _ in 0..levels {
        schema = wrap(&schema);
    }
    let version = bytes(4, &bytes(1, &schema));
    body("CustomResourceDefinition", &[bytes(2, &bytes(7, &version))])
}

fn reason(body: &[u8]) -> Reason {
    match decode(body) {
        Err(DecodeError::Malformed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nesting_is_bounded() {
    // The object, its spec, the list of versions, a version, its schema and the innermost one.
    let outside = 6;
    let negated: fn(&[u8]) -> Vec<u8> = |schema| bytes(28, schema);
    let of_items: fn(&[u8]) -> Vec<u8> = |schema| bytes(24, &bytes(1, schema));
    let of_properties: fn(&[u8]) -> Vec<u8> =
        |schema| bytes(29, &[text(1, "x"), bytes(2, schema)].concat());
    for (wrap, height) in [(negated, 1), (of_items, 1), (of_properties, 2)] {
        let most = (MAX_DEPTH - outside) / height;
        assert!(decode(&nested_schema(most, wrap)).is_ok());
        assert_eq!(reason(&nested_schema(most + 1, wrap)), Reason::TooDeep);
        assert_eq!(reason(&nested_schema(5_000, wrap)), Reason::TooDeep);
    }
}

#[test]
fn embedded_json_counts_as_nesting() {
    let with_default = |levels: usize, inner: usize| {
        let json = "[".repeat(inner) + &"]".repeat(inner);
        let mut schema = bytes(8, &text(1, &json));
        for _ in 0..levels {
            schema = bytes(28, &schema);
        }
        let version = bytes(4, &bytes(1, &schema));
        body("CustomResourceDefinition", &[bytes(2, &bytes(7, &version))])
    };
    assert!(decode(&with_default(MAX_DEPTH - 106, 100)).is_ok());
    assert_eq!(reason(&with_default(MAX_DEPTH - 105, 100)), Reason::TooDeep);
}

#[test]
fn values_are_bounded() {
    let containers = bytes(2, &[]).repeat(MAX_VALUES / 2);
    assert_eq!(
        reason(&body("Pod", &[bytes(2, &containers)])),
        Reason::TooManyValues
    );
}

#[test]
fn wrong_wire_types_name_the_field_and_both_types() {
    assert_eq!(
        reason(&body("ConfigMap", &[number(2, 0)])),
        Reason::WrongWireType {
            number: 2,
            found: WireType::Varint,
            expected: WireType::Bytes,
        }
    );
}

#[test]
fn the_table_is_sound() {
    let text = include_str!("messages.txt");
    let table = Table::parse(text).unwrap();
    assert!(table.messages.len() > 400);
    for message in &table.messages {
        let mut numbers: Vec<_> = message.fields.iter().map(|field| field.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), message.fields.len(), "{message:?}");
        for field in &message.fields {
            if field.presence == Presence::Inline {
                assert_eq!(field.shape, Shape::One, "{field:?}");
                assert!(matches!(field.kind, Kind::Message(_)), "{field:?}");
            }
            // A message that is written even if it is absent has no absence to tell from.
            if field.presence == Presence::NotZero && field.shape == Shape::One {
                assert!(!matches!(field.kind, Kind::Message(_)), "{field:?}");
            }
        }
    }
}

#[test]
fn no_message_contains_itself_when_it_is_absent() {
    fn visit(table: &Table, index: usize, open: &mut Vec<usize>) {
        assert!(!open.contains(&index), "{open:?} {index}");
        open.push(index);
        for field in &table.message(index).fields {
            let is_written = matches!(field.presence, Presence::Always | Presence::Inline);
            if let (true, Shape::One, Kind::Message(index)) = (is_written, field.shape, field.kind)
            {
                visit(table, index, open);
            }
        }
        open.pop();
    }
    for index in 0..table().messages.len() {
        visit(table(), index, &mut Vec::new());
    }
}

#[test]
fn mistakes_in_a_table_are_found() {
    let check = |text: &'static str, expected: &str| {
        assert_eq!(Table::parse(text).unwrap_err(), expected);
    };
    check("# a\nOne 1:x:Two", "1:x:Two");
    check("# a\nOne 1:x:b.One", "1:x:b.One");
    check("# a\nOne x:1", "x:1");
    check("# a\nOne\nOne", "a.One is there twice");
    check("@ v1 a One", "One");
    check("@ v1", "@ v1");
}

#[test]
fn all_kinds_that_can_be_sent_are_known() {
    for line in [
        "v1: Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume \
         PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service \
         ServiceAccount Status",
        "admissionregistration.k8s.io/v1: MutatingWebhookConfiguration ValidatingAdmissionPolicy \
         ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
        "apiextensions.k8s.io/v1: CustomResourceDefinition",
        "apiregistration.k8s.io/v1: APIService",
        "apps/v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
        "authentication.k8s.io/v1: SelfSubjectReview TokenRequest TokenReview",
        "authorization.k8s.io/v1: LocalSubjectAccessReview SelfSubjectAccessReview \
         SelfSubjectRulesReview SubjectAccessReview",
        "autoscaling/v1: HorizontalPodAutoscaler Scale",
        "autoscaling/v2: HorizontalPodAutoscaler",
        "batch/v1: CronJob Job",
        "certificates.k8s.io/v1: CertificateSigningRequest",
        "coordination.k8s.io/v1: Lease",
        "discovery.k8s.io/v1: EndpointSlice",
        "events.k8s.io/v1: Event",
        "networking.k8s.io/v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
        "node.k8s.io/v1: RuntimeClass",
        "policy/v1: Eviction PodDisruptionBudget",
        "rbac.authorization.k8s.io/v1: ClusterRole ClusterRoleBinding Role RoleBinding",
        "scheduling.k8s.io/v1: PriorityClass",
        "storage.k8s.io/v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment \
         VolumeAttributesClass",
    ] {
        let (version, kinds) = line.split_once(": ").unwrap();
        for kind in kinds.split(' ') {
            assert!(table().kind(version, kind).is_some(), "{version} {kind}");
        }
    }
}

/// Any kind of the table, with its API version.
fn any_kind() -> impl Strategy<Value = (&'static str, &'static str)> {
    let mut kinds: Vec<_> = table().kinds.keys().copied().collect();
    kinds.sort_unstable();
    proptest::sample::select(kinds)
}

/// Any object of any kind, as Go would print it.
fn any_object() -> impl Strategy<Value = Value> {
    any_kind().prop_perturb(|(version, kind), mut random: TestRng| {
        let index = table().kinds[&(version, kind)];
        let version = version.replace('*', "v1");
        sample::object(table(), index, &version, kind, &mut random)
    })
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(object in any_object()) {
        prop_assert_eq!(decode(&encode::object(table(), &object)), Ok(object));
    }

    #[test]
    fn what_is_answered_is_decoded(object in any_object()) {
        let body = crate::encode(&object).unwrap();
        prop_assert_eq!(decode(&body), Ok(object));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(
        (version, kind) in any_kind(),
        message in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = decode(&message);
        let _ = decode(&[b"k8s\0", message.as_slice()].concat());
        let _ = decode(&envelope(version, kind, &message));
    }

    #[test]
    fn cut_off_bodies_are_decoded_or_refused(object in any_object(), cut in any::<prop::sample::Index>()) {
        let body = encode::object(table(), &object);
        let _ = decode(&body[..cut.index(body.len())]);
    }

    #[test]
    fn changed_bodies_are_decoded_or_refused(
        object in any_object(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut body = encode::object(table(), &object);
        for (index, byte) in changes {
            let index = index.index(body.len());
            body[index] = byte;
        }
        let _ = decode(&body);
    }
}

/// As `protoc` would write `NamespaceList`.
#[test]
fn a_list_is_its_metadata_and_its_items() {
    let list = serde_json::json!({
        "apiVersion": "v1", "kind": "NamespaceList",
        "metadata": {"resourceVersion": "7", "remainingItemCount": 2},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let item = |name: &str| bytes(1, &text(1, name));
    let message = [
        bytes(1, &[text(2, "7"), number(4, 2)].concat()),
        bytes(2, &item("a")),
        bytes(2, &item("b")),
    ];
    let expected = envelope("v1", "NamespaceList", &message.concat());
    assert_eq!(crate::encode(&list), Some(expected));
    let unknown = serde_json::json!({"apiVersion": "example.com/v1", "kind": "SheepList"});
    assert_eq!(crate::encode(&unknown), None);
}
