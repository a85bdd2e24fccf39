//! Certificates: for somebody else, for too much, for too long, or from somebody else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_apiserver::{Authority, Clock, Credentials, HUB, Identity};
use jiff::SignedDuration;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, SanType,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{grant, whoami};
use crate::common::wire::Proof;
use crate::common::{TestServer, eventually};

pub(crate) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Bob may do with requests whatever the API offers, but is no approver.
async fn start() -> (TestServer, Proof) {
    let server = TestServer::start().await;
    let rules = json!([{
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["*"],
    }]);
    grant(&server, HUB, "bob", rules).await;
    let bob = server.certify("bob", &[], HUB);
    (server, bob)
}

pub(crate) fn params(user: &str, group: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params
}

pub(crate) fn request(params: &CertificateParams, key: &KeyPair) -> Value {
    let pem = params.serialize_request(key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": "x"},
        "spec": {
            "request": STANDARD.encode(pem), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    })
}

async fn approve(server: &TestServer, by: &Proof) -> u16 {
    let path = format!("{REQUESTS}/x/approval");
    let approved = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "x", "message": "x"},
    ]}});
    server.send(by, "PATCH", &path, approved).await.code
}

async fn signed(server: &TestServer, key: &KeyPair) -> Proof {
    let admin = server.admin(HUB);
    let path = format!("{REQUESTS}/x");
    let certificate = eventually("a certificate", || async {
        let answer = server.send(&admin, "GET", &path, Value::Null).await;
        let encoded = answer.body["status"]["certificate"].as_str()?.to_owned();
        String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
    })
    .await;
    Proof::certificate(Credentials {
        certificate,
        key: key.serialize_pem(),
    })
}

#[tokio::test]
async fn nobody_approves_their_own_request_for_a_foreign_name() {
    let (server, bob) = start().await;
    let key = KeyPair::generate().unwrap();
    let mut wanted = request(&params("root", "ops"), &key);
    // Nor does a request come approved, or signed, or from somebody else.
    wanted["spec"]["username"] = "root".into();
    wanted["spec"]["groups"] = json!(["system:masters"]);
    wanted["status"] = json!({
        "conditions": [{"type": "Approved", "status": "True"}], "certificate": "eA==",
    });
    let created = server
        .send(&bob, "POST", REQUESTS, wanted)
        .await
        .expect(201);
    assert_eq!(created["spec"]["username"], "bob");
    assert!(created["status"]["conditions"].is_null(), "{created}");
    assert!(created["status"]["certificate"].is_null(), "{created}");
    assert_eq!(approve(&server, &bob).await, 403);
    let item = format!("{REQUESTS}/x");
    let status = format!("{REQUESTS}/x/status");
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}});
    // By the front door it changes nothing, by the side door it is refused.
    let answer = server.send(&bob, "PATCH", &item, approved.clone()).await;
    assert!(answer.body["status"]["conditions"].is_null() || answer.code >= 400);
    server.send(&bob, "PATCH", &status, approved).await;
    let after = server
        .send(&bob, "GET", &item, Value::Null)
        .await
        .expect(200);
    assert!(after["status"]["conditions"].is_null(), "{after}");
    assert!(after["status"]["certificate"].is_null(), "{after}");
}

#[tokio::test]
async fn nobody_becomes_a_master_by_certificate() {
    let (server, bob) = start().await;
    let key = KeyPair::generate().unwrap();
    let wanted = request(&params("bob", "system:masters"), &key);
    for who in [&bob, &server.admin(HUB)] {
        let refused = server.send(who, "POST", REQUESTS, wanted.clone()).await;
        assert_eq!(
            (refused.code, refused.message()),
            (
                403,
                "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
            )
        );
    }
    // The signer refuses as well, should a request get past admission by another signer's name.
    let mut kubelet = wanted;
    kubelet["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client-kubelet".into();
    server
        .send(&bob, "POST", REQUESTS, kubelet)
        .await
        .expect(201);
    assert_eq!(approve(&server, &server.admin(HUB)).await, 200);
    let path = format!("{REQUESTS}/x");
    let failed = eventually("a failure", || async {
        let answer = server.send(&bob, "GET", &path, Value::Null).await;
        let conditions = answer.body["status"]["conditions"].as_array()?.clone();
        conditions
            .into_iter()
            .find(|found| found["type"] == "Failed")
    })
    .await;
    assert_eq!(
        failed["message"],
        "subject organization is not system:nodes"
    );
}

#[tokio::test]
async fn hostile_names_in_a_request_never_reach_the_certificate() {
    let (server, bob) = start().await;
    let key = KeyPair::generate().unwrap();
    let mut hostile = params("ann", "devs");
    hostile.subject_alt_names = [
        "bellwether:cluster:cluster1",
        "bellwether:cluster:hub",
        "bellwether:group:system:masters",
    ]
    .map(|uri| SanType::URI(uri.try_into().unwrap()))
    .into();
    hostile
        .subject_alt_names
        .push(SanType::DnsName("localhost".try_into().unwrap()));
    hostile.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    server
        .send(&bob, "POST", REQUESTS, request(&hostile, &key))
        .await
        .expect(201);
    assert_eq!(approve(&server, &server.admin(HUB)).await, 200);
    let ann = signed(&server, &key).await;
    let user = whoami(&server, &ann).await;
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["devs", "system:authenticated"]));
    let elsewhere = "/clusters/cluster1/version";
    assert_eq!(
        server.send(&ann, "GET", elsewhere, Value::Null).await.code,
        401
    );

    // It is no authority: what it signs is not believed.
    let own = ann.certificate.unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&own.certificate, &key);
    if let Ok(issuer) = issuer {
        let other = KeyPair::generate().unwrap();
        let forged = params("root", "system:masters")
            .signed_by(&other, &issuer)
            .unwrap();
        let chain = Credentials {
            certificate: forged.pem(),
            key: other.serialize_pem(),
        };
        assert!(!gets_in(&server, &chain).await);
    }
}

/// Whether a certificate is believed at all.
async fn gets_in(server: &TestServer, credentials: &Credentials) -> bool {
    let Ok(mut stream) = server.connect(Some(credentials)).await else {
        return false;
    };
    let request = b"GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut answer = Vec::new();
    stream.write_all(request).await.is_ok()
        && stream.read_to_end(&mut answer).await.is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn certificates_of_others_and_old_ones_are_refused_at_the_door() {
    let server = TestServer::start().await;
    let now = Clock::system().now();
    let root = Identity::administrator("root");
    let good = server.authority.issue_client(&root, HUB, now).unwrap();
    assert!(gets_in(&server, &good).await);
    let stranger = Authority::generate(now).unwrap();
    let foreign = stranger.issue_client(&root, HUB, now).unwrap();
    assert!(!gets_in(&server, &foreign).await);
    let long_ago = now - SignedDuration::from_hours(24 * 400);
    let expired = server.authority.issue_client(&root, HUB, long_ago).unwrap();
    assert!(!gets_in(&server, &expired).await);
    let early = now + SignedDuration::from_hours(1);
    let future = server.authority.issue_client(&root, HUB, early).unwrap();
    assert!(!gets_in(&server, &future).await);
    // A certificate for servers is none for clients.
    let serving = server.authority.issue_server(&["root"], &[], now).unwrap();
    assert!(!gets_in(&server, &serving).await);
}

#[tokio::test]
async fn a_connection_does_not_outlive_its_certificate() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let mut stream = server.connect(admin.certificate.as_ref()).await.unwrap();
    let request = b"GET /api/v1/namespaces/default HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut buffer = vec![0; 64 * 1024];
    stream.write_all(request).await.unwrap();
    let read = stream.read(&mut buffer).await.unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
    server.pass(SignedDuration::from_hours(24 * 366));
    stream.write_all(request).await.unwrap();
    let read = stream.read(&mut buffer).await.unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 401"));
}

#[tokio::test]
async fn broken_requests_are_refused_when_they_are_made() {
    let (server, bob) = start().await;
    let key = KeyPair::generate().unwrap();
    let good = request(&params("ann", "devs"), &key);
    let pem = STANDARD
        .decode(good["spec"]["request"].as_str().unwrap())
        .unwrap();
    let pem = String::from_utf8(pem).unwrap();
    // One letter of the signature, near the end.
    let place = pem.len() - 60;
    let mut tampered = pem.clone().into_bytes();
    tampered[place] = if tampered[place] == b'A' { b'B' } else { b'A' };
    for text in [
        Vec::new(),
        b"garbage".to_vec(),
        b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".to_vec(),
        tampered,
    ] {
        let mut wanted = good.clone();
        wanted["spec"]["request"] = STANDARD.encode(&text).into();
        let answer = server.send(&bob, "POST", REQUESTS, wanted).await;
        assert_eq!(answer.code, 422, "{}", answer.body);
    }
}
