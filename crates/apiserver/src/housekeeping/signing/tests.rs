use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::*;

fn request(common_name: &str, organization: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !common_name.is_empty() {
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
    }
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    let key = KeyPair::generate().unwrap();
    BASE64.encode(params.serialize_request(&key).unwrap().pem().unwrap())
}

fn csr(signer: &str, request: &str, usages: &[&str], conditions: &[&str]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}))
        .collect();
    json!({
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"signerName": signer, "request": request, "usages": usages},
        "status": {"conditions": conditions},
    })
}

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const USAGES: &[&str] = &["client auth", "digital signature"];

#[track_caller]
fn check(csr: &Value, wanted: &str) {
    let found = match decide(csr) {
        Step::Nothing => String::new(),
        Step::Sign(_, seconds) => format!("sign for {seconds}"),
        Step::Fail(why) => why,
    };
    assert_eq!(found, wanted, "{csr}");
}

#[test]
fn only_approved_requests_to_our_signers_are_signed() {
    let ann = request("ann", "devs");
    check(
        &csr(CLIENT, &ann, USAGES, &["Approved"]),
        "sign for 31535700",
    );
    check(&csr(CLIENT, &ann, USAGES, &[]), "");
    check(&csr(CLIENT, &ann, USAGES, &["Denied"]), "");
    check(&csr(CLIENT, &ann, USAGES, &["Approved", "Denied"]), "");
    check(&csr(CLIENT, &ann, USAGES, &["Approved", "Failed"]), "");
    check(&csr("example.com/x", &ann, USAGES, &["Approved"]), "");
    check(
        &csr("kubernetes.io/kubelet-serving", &ann, USAGES, &["Approved"]),
        "",
    );
    let mut issued = csr(CLIENT, &ann, USAGES, &["Approved"]);
    issued["status"]["certificate"] = "x".into();
    check(&issued, "");
}

#[test]
fn requests_that_ask_for_too_much_fail() {
    let approved = |request: &str, usages: &[&str]| csr(CLIENT, request, usages, &["Approved"]);
    let ann = request("ann", "devs");
    check(
        &approved(&ann, &["client auth", "cert sign"]),
        "invalid usage for client certificate: cert sign",
    );
    check(
        &approved(&ann, &["digital signature"]),
        "missing required usage for client certificate: client auth",
    );
    check(
        &approved(&request("ann", "system:masters"), USAGES),
        "certificates for the group system:masters are not signed",
    );
    check(
        &approved(&request("", "devs"), USAGES),
        "the subject must have one common name",
    );
    check(
        &approved("AAAA", USAGES),
        "PEM block type must be CERTIFICATE REQUEST",
    );
    let kubelet = |request: &str| csr(KUBELET, request, USAGES, &["Approved"]);
    check(
        &kubelet(&request("system:node:a", "system:nodes")),
        "sign for 31535700",
    );
    check(
        &kubelet(&request("root", "system:nodes")),
        "subject common name does not begin with system:node:",
    );
    check(
        &kubelet(&request("system:node:a", "devs")),
        "subject organization is not system:nodes",
    );
}

#[test]
fn wishes_for_a_duration_are_bounded() {
    for (wanted, given) in [
        (None, LONGEST_SECONDS - 300),
        (Some(1), 600),
        (Some(3_600), 3_600),
        (Some(i64::MAX), LONGEST_SECONDS - 300),
    ] {
        assert_eq!(seconds(wanted), given, "{wanted:?}");
    }
}

#[test]
fn old_requests_go() {
    let hours = |csr: &Value| {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        deadline(csr).map(|at| at.duration_since(start).as_hours())
    };
    let with = |conditions: &[&str]| csr(CLIENT, "", USAGES, conditions);
    assert_eq!(hours(&with(&[])), Some(24));
    assert_eq!(hours(&with(&["Denied"])), Some(1));
    assert_eq!(hours(&with(&["Approved"])), Some(24));
    assert_eq!(hours(&with(&["Approved", "Failed"])), Some(1));
    let mut issued = with(&["Approved"]);
    issued["status"]["certificate"] = "x".into();
    assert_eq!(hours(&issued), Some(1));
}
