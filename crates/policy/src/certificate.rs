//! CertificatePolicies: certificates in Secrets that end too soon, are good for too long, or are for
//! names that they must not be for.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::meta::MicroTime;
use bellwether_api::policy::{
    BadCertificate, CertificatePolicy, CertificatePolicySpec, CertificatePolicyStatus,
    ComplianceState, EvaluationHistory, NamespaceCertificates,
};
use bellwether_go::duration::GoDuration;
use bellwether_go::regexp::Regex;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use crate::config_policy::namespaces;

/// How long certificates have to be good where a policy does not say it.
const MINIMUM: SignedDuration = SignedDuration::from_hours(672);

/// The key of a Secret with a certificate, and the label that names another.
const KEY: &str = "tls.crt";
const KEY_LABEL: &str = "certificate_key_name";

/// Entries that a history keeps.
const MAX_HISTORY: usize = 10;

/// A certificate in a Secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The Secret.
    pub secret: String,
    /// From when it is good.
    pub not_before: Timestamp,
    /// Until when it is good.
    pub not_after: Timestamp,
    /// Whether it is that of a certificate authority.
    pub is_authority: bool,
    /// The names that it is for.
    pub names: Vec<String>,
}

/// The namespaces that a policy looks at, in order.
pub fn namespaces(policy: &CertificatePolicy, all: &[Value]) -> Result<Vec<String>, String> {
    match &policy.spec.namespace_selector {
        Some(selector) => namespaces::selected(selector, all),
        None => Ok(Vec::new()),
    }
}

/// The labels that Secrets have to have, as a selector.
pub fn selector(policy: &CertificatePolicy) -> String {
    let labels = policy.spec.label_selector.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(",")
}

/// The first certificate in a Secret, if there is one.
pub fn certificate(secret: &Value) -> Option<Certificate> {
    let metadata = &secret["metadata"];
    let key = metadata["labels"][KEY_LABEL].as_str().unwrap_or(KEY);
    let data = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    let (_, pem) = parse_x509_pem(&data).ok()?;
    let parsed = pem.parse_x509().ok()?;
    let time = |seconds: i64| Timestamp::from_second(seconds).ok();
    let mut names = Vec::new();
    if let Ok(Some(extension)) = parsed.subject_alternative_name() {
        for name in &extension.value.general_names {
            match name {
                GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => {
                    names.push((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => names.extend(address(bytes)),
                _ => {}
            }
        }
    }
    Some(Certificate {
        namespace: metadata["namespace"].as_str()?.to_owned(),
        secret: metadata["name"].as_str()?.to_owned(),
        not_before: time(parsed.validity().not_before.timestamp())?,
        not_after: time(parsed.validity().not_after.timestamp())?,
        is_authority: parsed.is_ca(),
        names,
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(bytes).to_string());
    }
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    Some(std::net::Ipv6Addr::from(bytes).to_string())
}

/// What a certificate can do wrong, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    EndsSoon,
    AuthorityEndsSoon,
    TooLong,
    AuthorityTooLong,
    BadName,
}

impl Fault {
    fn text(self, spec: &CertificatePolicySpec) -> String {
        let shown = |duration: &Option<String>, default: SignedDuration| {
            let duration = read(duration.as_deref()).unwrap_or(default);
            let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
            GoDuration::from_nanos(nanoseconds).to_string()
        };
        match self {
            Self::EndsSoon => format!(
                "certificates expire in less than {}",
                shown(&spec.minimum_duration, MINIMUM)
            ),
            Self::AuthorityEndsSoon => format!(
                "CA certificates expire in less than {}",
                shown(&spec.minimum_ca_duration, MINIMUM)
            ),
            Self::TooLong => format!(
                "certificates exceed the maximum duration of {}",
                shown(&spec.maximum_duration, SignedDuration::ZERO)
            ),
            Self::AuthorityTooLong => format!(
                "CA certificates exceed the maximum duration of {}",
                shown(&spec.maximum_ca_duration, SignedDuration::ZERO)
            ),
            Self::BadName => "certificates defined SAN entries do not match pattern".to_owned(),
        }
    }
}

fn read(duration: Option<&str>) -> Option<SignedDuration> {
    let duration = duration?.parse::<GoDuration>().ok()?;
    Some(duration.to_signed())
}

/// The patterns of a policy for names of certificates.
#[derive(Debug, Default)]
struct NamePatterns {
    allowed: Option<Regex>,
    disallowed: Option<Regex>,
    /// Why a pattern cannot be used. It is a violation: names that nobody checks are not compliant.
    problems: Vec<String>,
}

impl NamePatterns {
    fn compile(spec: &CertificatePolicySpec) -> Self {
        let mut problems = Vec::new();
        let mut pattern = |field: &str, text: Option<&str>| match Regex::new(text?) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                problems.push(format!(
                    "{field} is not a valid regular expression: {error}"
                ));
                None
            }
        };
        Self {
            allowed: pattern("allowedSANPattern", spec.allowed_san_pattern.as_deref()),
            disallowed: pattern(
                "disallowedSANPattern",
                spec.disallowed_san_pattern.as_deref(),
            ),
            problems,
        }
    }

    fn refuse(&self, name: &str) -> bool {
        let is_allowed = self.allowed.as_ref().is_none_or(|it| it.is_match(name));
        let is_disallowed = self.disallowed.as_ref().is_some_and(|it| it.is_match(name));
        !is_allowed || is_disallowed
    }
}

/// What is wrong with a certificate.
fn faults(
    certificate: &Certificate,
    spec: &CertificatePolicySpec,
    patterns: &NamePatterns,
    now: Timestamp,
) -> Vec<Fault> {
    let left = certificate.not_after.duration_since(now);
    let whole = certificate.not_after.duration_since(certificate.not_before);
    let mut faults = Vec::new();
    let of_authority =
        read(spec.minimum_ca_duration.as_deref()).filter(|_| certificate.is_authority);
    match of_authority {
        Some(minimum) if left < minimum => faults.push(Fault::AuthorityEndsSoon),
        Some(_) => {}
        None => {
            let minimum = read(spec.minimum_duration.as_deref()).unwrap_or(MINIMUM);
            if left < minimum {
                faults.push(Fault::EndsSoon);
            }
        }
    }
    let of_authority =
        read(spec.maximum_ca_duration.as_deref()).filter(|_| certificate.is_authority);
    match (of_authority, read(spec.maximum_duration.as_deref())) {
        (Some(maximum), _) if whole > maximum => faults.push(Fault::AuthorityTooLong),
        (None, Some(maximum)) if whole > maximum => faults.push(Fault::TooLong),
        _ => {}
    }
    if certificate.names.iter().any(|name| patterns.refuse(name)) {
        faults.push(Fault::BadName);
    }
    faults
}

/// What is found, and when the next certificate is due.
#[derive(Debug, Clone, PartialEq)]
pub struct CertificateReport {
    /// The status.
    pub status: CertificatePolicyStatus,
    /// What is reported.
    pub message: String,
    /// Whether it is news.
    pub is_news: bool,
    /// When a certificate that is good now ends too soon.
    pub due: Option<Timestamp>,
}

/// Evaluates a policy over the certificates of the selected namespaces.
pub fn evaluate(
    policy: &CertificatePolicy,
    selected: &[String],
    certificates: &[Certificate],
    now: Timestamp,
) -> CertificateReport {
    let spec = &policy.spec;
    let patterns = NamePatterns::compile(spec);
    let mut by_fault: BTreeMap<Fault, Vec<String>> = BTreeMap::new();
    let mut details: BTreeMap<String, NamespaceCertificates> = selected
        .iter()
        .map(|namespace| (namespace.clone(), NamespaceCertificates::default()))
        .collect();
    let minimum = read(spec.minimum_duration.as_deref()).unwrap_or(MINIMUM);
    let mut due: Option<Timestamp> = None;
    for certificate in certificates {
        let faults = faults(certificate, spec, &patterns, now);
        let end = certificate.not_after.checked_sub(minimum).ok();
        due = due.into_iter().chain(end.filter(|end| *end > now)).min();
        if faults.is_empty() {
            continue;
        }
        let place = format!("{}:{}", certificate.namespace, certificate.secret);
        for fault in faults {
            by_fault.entry(fault).or_default().push(place.clone());
        }
        let entry = details.entry(certificate.namespace.clone()).or_default();
        entry.non_compliant_certificates += 1;
        entry
            .non_compliant_certificates_list
            .insert(certificate.secret.clone(), bad(certificate));
    }
    let is_compliant = by_fault.is_empty() && patterns.problems.is_empty() && !selected.is_empty();
    let state = if is_compliant {
        ComplianceState::Compliant
    } else {
        ComplianceState::NonCompliant
    };
    let mut message = message(&state, selected, &by_fault, spec);
    for problem in &patterns.problems {
        message = format!("{message}; {problem}");
    }
    for (namespace, details) in &mut details {
        details.message = Some(format!(
            "{} certificates in namespace {namespace} are not as the policy says",
            details.non_compliant_certificates
        ));
    }
    report(policy, &state, details, message, now, due)
}

fn report(
    policy: &CertificatePolicy,
    state: &ComplianceState,
    details: BTreeMap<String, NamespaceCertificates>,
    message: String,
    now: Timestamp,
    due: Option<Timestamp>,
) -> CertificateReport {
    let mut status = policy.status.clone().unwrap_or_default();
    let last = status.history.first();
    let is_news = last.and_then(|last| last.message.as_ref()) != Some(&message);
    status.compliant = Some(state.as_str().to_owned());
    status.compliancy_details = details;
    if is_news {
        let entry = EvaluationHistory {
            last_timestamp: Some(MicroTime(now)),
            message: Some(message.clone()),
            ..EvaluationHistory::default()
        };
        status.history.insert(0, entry);
        status.history.truncate(MAX_HISTORY);
    }
    CertificateReport {
        status,
        message,
        is_news,
        due,
    }
}

fn bad(certificate: &Certificate) -> BadCertificate {
    let whole = certificate.not_after.duration_since(certificate.not_before);
    let nanoseconds = i64::try_from(whole.as_nanos()).unwrap_or(i64::MAX);
    BadCertificate {
        secret_name: Some(certificate.secret.clone()),
        expiration: Some(certificate.not_after.to_string()),
        ca: certificate.is_authority,
        duration: Some(GoDuration::from_nanos(nanoseconds).to_string()),
        sans: certificate.names.clone(),
        ..BadCertificate::default()
    }
}

/// What is reported of all certificates.
fn message(
    state: &ComplianceState,
    selected: &[String],
    by_fault: &BTreeMap<Fault, Vec<String>>,
    spec: &CertificatePolicySpec,
) -> String {
    if selected.is_empty() {
        return format!("{state}; No namespaces matched the namespace selector.");
    }
    if by_fault.is_empty() {
        return format!("{state}; 0 {}", Fault::EndsSoon.text(spec));
    }
    let mut text = state.as_str().to_owned();
    for (fault, places) in by_fault {
        let mut places = places.clone();
        places.sort();
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "; {} {}: {}",
            places.len(),
            fault.text(spec),
            places.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + hour * 3600).unwrap()
    }

    fn certificate(hours: i64, is_authority: bool, name: &str) -> Certificate {
        Certificate {
            namespace: "web".to_owned(),
            secret: "site".to_owned(),
            not_before: at(-100),
            not_after: at(hours),
            is_authority,
            names: vec![name.to_owned()],
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn reports(spec: Value, certificate: &Certificate, expected: &str) {
        let policy: CertificatePolicy = serde_json::from_value(json!({
            "apiVersion": "policy.open-cluster-management.io/v1",
            "kind": "CertificatePolicy", "metadata": {"name": "p"}, "spec": spec,
        }))
        .unwrap();
        let selected = ["web".to_owned()];
        let found = evaluate(&policy, &selected, std::slice::from_ref(certificate), at(0));
        assert_eq!(found.message, expected);
        let mut again = policy.clone();
        again.status = Some(found.status);
        assert!(!evaluate(&again, &selected, std::slice::from_ref(certificate), at(0)).is_news);
    }

    #[test]
    fn certificates_have_to_be_good_long_enough_but_not_too_long() {
        let check = reports;
        check(
            json!({}),
            &certificate(1000, false, "a"),
            "Compliant; 0 certificates expire in less than 672h0m0s",
        );
        check(
            json!({"minimumDuration": "300h"}),
            &certificate(200, false, "a"),
            "NonCompliant; 1 certificates expire in less than 300h0m0s: web:site",
        );
        check(
            json!({"minimumDuration": "300h", "minimumCADuration": "400h"}),
            &certificate(350, true, "a"),
            "NonCompliant; 1 CA certificates expire in less than 400h0m0s: web:site",
        );
        check(
            json!({"maximumDuration": "900h"}),
            &certificate(1000, false, "a"),
            "NonCompliant; 1 certificates exceed the maximum duration of 900h0m0s: web:site",
        );
        check(
            json!({"allowedSANPattern": "^[a-z.]+$"}),
            &certificate(1000, false, "*.example.org"),
            "NonCompliant; 1 certificates defined SAN entries do not match pattern: web:site",
        );
    }

    #[test]
    fn names_are_matched_by_patterns_of_go() {
        // In Go, a brace that begins no repetition is a character.
        reports(
            json!({"disallowedSANPattern": "^a{$"}),
            &certificate(1000, false, "a{"),
            "NonCompliant; 1 certificates defined SAN entries do not match pattern: web:site",
        );
        reports(
            json!({"allowedSANPattern": "^(a"}),
            &certificate(1000, false, "a"),
            "NonCompliant; 0 certificates expire in less than 672h0m0s; allowedSANPattern is not a \
             valid regular expression: missing closing ): `^(a`",
        );
        reports(
            json!({"disallowedSANPattern": "a(?=b)"}),
            &certificate(1000, false, "a"),
            "NonCompliant; 0 certificates expire in less than 672h0m0s; disallowedSANPattern is not \
             a valid regular expression: invalid or unsupported Perl syntax: `(?=`",
        );
    }

    #[test]
    fn without_namespaces_nothing_is_compliant() {
        let policy = CertificatePolicy::default();
        let found = evaluate(&policy, &[], &[], at(0));
        assert_eq!(
            found.message,
            "NonCompliant; No namespaces matched the namespace selector."
        );
    }
}
