use super::*;
use rcgen::{DnValue, string::Ia5String};

fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000).unwrap()
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

#[test]
fn a_client_certificate_names_user_groups_and_cluster() {
    let authority = Authority::generate(now()).unwrap();
    let authority = Authority::load(authority.credentials().clone()).unwrap();
    let ann = Identity::authenticated("änn: x", ["a".to_owned(), "b:c/d".to_owned()]);
    let issued = authority.issue_client(&ann, "cluster1", now()).unwrap();
    let certified = identify(&der(&issued.certificate)).unwrap();
    assert_eq!(certified.identity.user, ann.user);
    assert_eq!(certified.identity.groups, ann.groups);
    let id = &certified.identity.extra[crate::access::CREDENTIAL_ID][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");
    assert_eq!(certified.cluster, "cluster1");
    assert_eq!(
        certified.expires.as_second(),
        now().as_second() + 365 * 86_400
    );
}

#[test]
fn a_server_certificate_identifies_nobody() {
    let authority = Authority::generate(now()).unwrap();
    let issued = authority.issue_server(&["localhost"], &[], now()).unwrap();
    assert!(identify(&der(&issued.certificate)).is_none());
}

/// A request with these parts, signed by a new key.
fn request(common_name: &str, organization: &str, uris: &[&str]) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.distinguished_name.push(
        DnType::OrganizationName,
        DnValue::Utf8String(organization.to_owned()),
    );
    params.subject_alt_names = uris
        .iter()
        .map(|uri| SanType::URI(Ia5String::try_from((*uri).to_owned()).unwrap()))
        .collect();
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

#[test]
fn what_a_request_asks_for_beyond_user_and_groups_is_left_out() {
    let authority = Authority::generate(now()).unwrap();
    let hostile = [
        "bellwether:cluster:hub",
        "bellwether:group:system:masters",
        "https://example.com",
    ];
    let pem = request("ann", "devs", &hostile);
    let parsed = CertificateRequest::parse(pem.as_bytes()).unwrap();
    assert!(parsed.has_alternative_names);
    let signed = authority
        .sign_request(&parsed, "cluster1", 3_600, now())
        .unwrap();
    let certified = identify(&der(&signed)).unwrap();
    assert_eq!(certified.identity.user, "ann");
    assert_eq!(certified.identity.groups, ["devs", "system:authenticated"]);
    assert_eq!(certified.cluster, "cluster1");
    assert_eq!(certified.expires.as_second(), now().as_second() + 3_600);
    let bytes = der(&signed);
    let (_, certificate) = X509Certificate::from_der(&bytes).unwrap();
    assert!(!certificate.is_ca());
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 1);
}

#[test]
fn no_certificate_outlives_the_authority() {
    let authority = Authority::generate(now()).unwrap();
    let parsed = CertificateRequest::parse(request("ann", "x", &[]).as_bytes()).unwrap();
    let signed = authority
        .sign_request(&parsed, "hub", i64::MAX, now())
        .unwrap();
    let certified = identify(&der(&signed)).unwrap();
    assert_eq!(certified.expires.as_second(), authority.own.not_after);
}

#[test]
fn broken_requests_are_refused() {
    let good = request("ann", "devs", &[]);
    let mut bytes = der(&good);
    // The last byte belongs to the signature.
    *bytes.last_mut().unwrap() ^= 1;
    let forged = to_pem(&bytes).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    for (pem, wanted) in [
        ("", "PEM block type"),
        ("-----BEGIN CERTIFICATE REQUEST-----\n", "PEM block type"),
        (
            &*good.replace("CERTIFICATE REQUEST", "CERTIFICATE"),
            "PEM block type",
        ),
        (
            "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
            "cannot be read",
        ),
        (&*forged, "signature"),
    ] {
        let error = CertificateRequest::parse(pem.as_bytes()).unwrap_err();
        assert!(error.contains(wanted), "{pem}: {error}");
    }
}
