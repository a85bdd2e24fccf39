//! A request as rules, webhooks and expressions see it.

use bellwether_api::admission::Operation;
use bellwether_cel::AccessCheck;
use serde_json::{Map, Value, json};

/// A kind of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Name of the kind.
    pub name: String,
}

/// One version of a resource, and the kind of the objects that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name.
    pub resource: String,
    /// Kind of what is written: that of the resource, or that of a subresource such as `scale`.
    pub kind: Kind,
}

impl Target {
    /// Group, version and kind as reviews have them.
    pub fn kind_to_json(&self) -> Value {
        let Kind {
            group,
            version,
            name,
        } = &self.kind;
        json!({"group": group, "version": version, "kind": name})
    }

    /// Group, version and resource as reviews have them.
    pub fn resource_to_json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.resource})
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// The resource in the version of the request.
    pub target: &'a Target,
    /// The resource in its other versions, without the one of the request.
    pub equivalents: &'a [Target],
    /// Subresource, or nothing.
    pub subresource: &'a str,
    /// Name in the request; empty if it is yet to be generated, and for whole collections.
    pub name: &'a str,
    /// Namespace of the request; for a namespace its own name.
    pub namespace: &'a str,
    /// What is written; none for a deletion.
    pub object: Option<&'a Value>,
    /// What was there before; none at creation.
    pub old: Option<&'a Value>,
    /// Who asks, as `userInfo` of a review has it.
    pub user: &'a Value,
    /// Options of the operation, such as a `CreateOptions`.
    pub options: &'a Value,
    /// True if nothing is to be stored.
    pub dry_run: bool,
}

impl Attributes<'_> {
    /// What `authorizer.requestResource` is about.
    pub(crate) fn access(&self) -> AccessCheck<'_> {
        AccessCheck {
            group: &self.target.group,
            resource: &self.target.resource,
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.name,
            ..AccessCheck::default()
        }
    }

    /// The name in a refusal: of the object if the request has none, or what it will begin with.
    pub fn shown_name(&self) -> &str {
        if !self.name.is_empty() {
            return self.name;
        }
        let field = |field: &str| {
            let object = self.object?;
            let text = object["metadata"][field].as_str()?;
            (!text.is_empty()).then_some(text)
        };
        field("name")
            .or_else(|| field("generateName"))
            .unwrap_or("Unknown")
    }

    /// The `request` of a review for a webhook or an expression that sees the object as `target`, without
    /// `uid`, `object` and `oldObject`.
    pub fn to_request(&self, target: &Target) -> Map<String, Value> {
        let mut request = Map::new();
        let mut put = |key: &str, value: Value| {
            request.insert(key.to_owned(), value);
        };
        put("kind", target.kind_to_json());
        put("resource", target.resource_to_json());
        put("requestKind", self.target.kind_to_json());
        put("requestResource", self.target.resource_to_json());
        for (key, text) in [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ] {
            if !text.is_empty() {
                put(key, text.into());
            }
        }
        put("operation", self.operation.as_str().into());
        put("userInfo", self.user.clone());
        put("dryRun", self.dry_run.into());
        put("options", self.options.clone());
        request
    }
}
