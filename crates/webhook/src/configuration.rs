//! The webhook configurations that a hub should have.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_api::admission::{Admission, Rule};
use serde_json::{Value, json};

/// The name of both configurations.
pub const NAME: &str = "bellwether-hub";

/// What names of webhooks end with.
const DOMAIN: &str = "bellwether.dev";

/// How long the API server waits for an answer, in seconds.
const TIMEOUT_SECONDS: u32 = 10;

/// Where the API server finds the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// At an address, such as `https://hub.example.com:9443`.
    Url(String),
    /// Behind a Service.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Port of the Service.
        port: u16,
    },
}

impl Location {
    /// Reads `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`.
    pub fn parse_service(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a Service, such as fleet/bellwether:443");
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
            None => (rest, 443),
        };
        let is_name = |name: &str| bellwether_json::name::dns_label_problems(name).is_empty();
        if !is_name(namespace) || !is_name(name) {
            return Err(wrong());
        }
        Ok(Self::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
        })
    }

    /// Reads an address.
    pub fn parse_url(text: &str) -> Result<Self, String> {
        let uri = http::Uri::from_str(text).ok();
        let is_address = |uri: &http::Uri| {
            uri.scheme_str() == Some("https") && uri.host().is_some() && uri.query().is_none()
        };
        match uri.filter(is_address) {
            Some(_) => Ok(Self::Url(text.trim_end_matches('/').to_owned())),
            None => Err(format!(
                "{text:?} is not an address, such as https://hub.example.com:9443"
            )),
        }
    }

    /// Names and addresses that the certificate of the server has to have.
    pub fn names(&self) -> (Vec<String>, Vec<IpAddr>) {
        match self {
            Self::Service {
                namespace, name, ..
            } => {
                let service = format!("{name}.{namespace}.svc");
                (
                    vec![format!("{service}.cluster.local"), service],
                    Vec::new(),
                )
            }
            Self::Url(url) => {
                let uri = http::Uri::from_str(url).unwrap_or_default();
                let host = uri.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                match host.parse() {
                    Ok(address) => (Vec::new(), vec![address]),
                    Err(_) => (vec![host.to_owned()], Vec::new()),
                }
            }
        }
    }

    fn client_config(&self, path: &str, authorities: &str) -> Value {
        let mut config = match self {
            Self::Url(url) => json!({"url": format!("{url}{path}")}),
            Self::Service {
                namespace,
                name,
                port,
            } => json!({"service": {
                "namespace": namespace, "name": name, "port": port, "path": path,
            }}),
        };
        config["caBundle"] = BASE64.encode(authorities).into();
        config
    }
}

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// MutatingWebhookConfiguration
    Mutating,
    /// ValidatingWebhookConfiguration
    Validating,
}

impl Kind {
    /// The kind of the object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// What the API server has to ask an admission about.
    fn rules(self, admission: &dyn Admission) -> &'static [Rule] {
        match self {
            Self::Mutating => admission.mutations(),
            Self::Validating => admission.rules(),
        }
    }

    /// The first part of paths of the server.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Mutating => "mutate",
            Self::Validating => "validate",
        }
    }
}

/// The configuration for all rules of a hub. `authorities` are the certificates that the server is
/// trusted by, in PEM. Everything that a server would fill in is there, so that it can be compared.
pub fn configuration(
    kind: Kind,
    admissions: &[Arc<dyn Admission>],
    location: &Location,
    authorities: &str,
) -> Value {
    let webhooks: Vec<Value> = admissions
        .iter()
        .flat_map(|admission| {
            let rules = kind.rules(&**admission);
            let mut conditions: Vec<Option<&str>> = rules.iter().map(|it| it.condition).collect();
            conditions.dedup();
            conditions
                .into_iter()
                .enumerate()
                .map(move |(index, condition)| {
                    let number = match index {
                        0 => String::new(),
                        index => format!("-{index}"),
                    };
                    let name = format!("{}{number}.{}.{DOMAIN}", admission.name(), kind.verb());
                    let rules = rules.iter().filter(|it| it.condition == condition);
                    let rules: Vec<&Rule> = rules.collect();
                    let path = format!("/{}/{}", kind.verb(), admission.name());
                    let client = location.client_config(&path, authorities);
                    webhook(kind, &name, &rules, condition, &client)
                })
        })
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.as_str(),
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "bellwether"}},
        "webhooks": webhooks,
    })
}

fn webhook(
    kind: Kind,
    name: &str,
    rules: &[&Rule],
    condition: Option<&str>,
    client: &Value,
) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| rule_to_json(rule)).collect();
    let mut webhook = json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "rules": rules,
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    });
    if let Some(condition) = condition {
        webhook["matchConditions"] = json!([{"name": "concerned", "expression": condition}]);
    }
    if kind == Kind::Mutating {
        webhook["reinvocationPolicy"] = "Never".into();
    }
    webhook
}

fn rule_to_json(rule: &Rule) -> Value {
    let operations: Vec<&str> = rule.operations.iter().map(|it| it.as_str()).collect();
    json!({
        "apiGroups": [rule.group], "apiVersions": ["*"], "operations": operations,
        "resources": rule.resources, "scope": "*",
    })
}

#[cfg(test)]
mod tests {
    use bellwether_placement::admission::FleetAdmission;

    use super::*;

    #[test]
    fn a_location_is_a_service_or_an_address() {
        let service = Location::parse_service("fleet/hub:8443").unwrap();
        let (names, _) = service.names();
        assert!(names.contains(&"hub.fleet.svc".to_owned()));
        for text in ["hub", "Fleet/hub", "fleet/hub:x", "/hub"] {
            assert!(Location::parse_service(text).is_err(), "{text}");
        }
        let url = Location::parse_url("https://127.0.0.1:9443/").unwrap();
        assert_eq!(url, Location::Url("https://127.0.0.1:9443".into()));
        assert_eq!(url.names().1, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        for text in ["http://a", "a", "https://a?b"] {
            assert!(Location::parse_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn webhooks_are_called_only_where_rules_concern_a_request() {
        let admissions: Vec<Arc<dyn Admission>> = vec![Arc::new(FleetAdmission)];
        let url = Location::Url("https://hub:1".into());
        let found = configuration(Kind::Validating, &admissions, &url, "PEM");
        let webhooks = found["webhooks"].as_array().unwrap();
        assert_eq!(webhooks.len(), 2);
        assert_eq!(webhooks[0]["name"], "fleet.validate.bellwether.dev");
        let config = &webhooks[0]["clientConfig"];
        assert_eq!(config["url"], "https://hub:1/validate/fleet");
        assert_eq!(config["caBundle"], BASE64.encode("PEM"));
        assert!(webhooks[0]["matchConditions"].is_null());
        assert_eq!(webhooks[1]["name"], "fleet-1.validate.bellwether.dev");
        let resources = &webhooks[1]["rules"][0]["resources"];
        assert_eq!(*resources, json!(["certificatesigningrequests"]));
        let condition = webhooks[1]["matchConditions"][0]["expression"].as_str();
        assert!(condition.unwrap().contains("startsWith"), "{condition:?}");
    }
}
