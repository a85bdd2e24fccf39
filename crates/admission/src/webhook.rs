//! Webhooks of a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::Host;
use crate::attributes::{Attributes, Target};
use crate::condition::{Conditions, CostLimit, Inputs, TooCostly, Verdict};
use crate::criteria::{Criteria, Failure};

/// How long a webhook may take that does not say.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// At a URL.
    Url(String),
    /// Behind a Service of the cluster.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Path, with its slash.
        path: String,
        /// Port of the Service.
        port: u16,
    },
}

impl Endpoint {
    fn read(config: &Value) -> Self {
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        if let Some(url) = config["url"].as_str() {
            return Self::Url(url.to_owned());
        }
        let path = text("path");
        Self::Service {
            namespace: text("namespace"),
            name: text("name"),
            path: if path.is_empty() { "/".into() } else { path },
            port: service["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(443),
        }
    }

    /// The address that is called, without the query.
    pub fn url(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Service {
                namespace,
                name,
                path,
                port,
            } => format!("https://{name}.{namespace}.svc:{port}{path}"),
        }
    }
}

/// A webhook, ready to be matched.
#[derive(Debug)]
pub struct Webhook {
    /// Its name, which messages show.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Certificates that it is trusted by, in PEM; empty for those of the system.
    pub authorities: Vec<u8>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// True if a request goes on where the webhook cannot be called.
    pub ignores_failures: bool,
    /// True if a mutating webhook is called again after others have changed the object.
    pub is_reinvoked: bool,
    /// True if it may be called for a dry run.
    pub allows_dry_run: bool,
    /// Versions of reviews that it reads.
    pub review_versions: Vec<String>,
    criteria: Criteria,
    conditions: Conditions,
}

/// What is known of a webhook and a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Matched<'a> {
    /// It is called, and sees the object as this.
    Call(&'a Target),
    /// It is not called.
    Skip,
    /// Its match conditions failed, so that the request fails.
    Refuse(String),
}

impl Webhook {
    /// Reads all webhooks of a configuration.
    pub fn list(configuration: &Value) -> Vec<Self> {
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        webhooks.map(Self::read).collect()
    }

    fn read(webhook: &Value) -> Self {
        let config = &webhook["clientConfig"];
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        let versions = webhook["admissionReviewVersions"].as_array();
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let seconds = webhook["timeoutSeconds"].as_u64();
        let effects = webhook["sideEffects"].as_str();
        Self {
            name: webhook["name"].as_str().unwrap_or_default().to_owned(),
            endpoint: Endpoint::read(config),
            authorities: BASE64.decode(bundle).unwrap_or_default(),
            timeout: Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
            ignores_failures: webhook["failurePolicy"] == "Ignore",
            is_reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
            allows_dry_run: matches!(effects, Some("None" | "NoneOnDryRun")),
            review_versions: versions.map(str::to_owned).collect(),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::of_webhook(webhook),
        }
    }

    /// Whether the webhook is called for a request.
    pub fn matches<'a>(
        &self,
        attributes: &Attributes<'a>,
        host: &dyn Host,
        limit: CostLimit,
    ) -> Result<Result<Matched<'a>, Failure>, TooCostly> {
        let target = match self.criteria.matches(attributes, host) {
            Ok(Some(target)) => target,
            Ok(None) => return Ok(Ok(Matched::Skip)),
            Err(failure) => return Ok(Err(failure)),
        };
        if self.conditions.is_empty() {
            return Ok(Ok(Matched::Call(target)));
        }
        let request = Value::Object(attributes.to_request(target));
        let seen = Seen::new(attributes, target, host);
        let inputs = Inputs {
            object: seen.object(),
            old_object: seen.old(),
            request: &request,
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: host,
            access: attributes.access(),
        };
        Ok(Ok(match self.conditions.evaluate(&inputs, limit)? {
            Verdict::Matches => Matched::Call(target),
            Verdict::Excluded => Matched::Skip,
            Verdict::Failed(why) => Matched::Refuse(why),
        }))
    }
}

/// The objects of a request in the version that a webhook or a policy asks for.
#[derive(Debug)]
pub struct Seen<'a> {
    object: std::borrow::Cow<'a, Value>,
    old: std::borrow::Cow<'a, Value>,
}

impl<'a> Seen<'a> {
    /// The objects of a request as `target`.
    pub fn new(attributes: &Attributes<'a>, target: &Target, host: &dyn Host) -> Self {
        use std::borrow::Cow;
        let see = |object: Option<&'a Value>| match object {
            None => Cow::Owned(Value::Null),
            // What subresources write has the same kind in all versions of a resource.
            Some(object) if target.kind == attributes.target.kind => Cow::Borrowed(object),
            Some(object) => Cow::Owned(host.convert(object, target)),
        };
        Self {
            object: see(attributes.object),
            old: see(attributes.old),
        }
    }

    /// What is written, or null.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// What was there before, or null.
    pub fn old(&self) -> &Value {
        &self.old
    }
}
