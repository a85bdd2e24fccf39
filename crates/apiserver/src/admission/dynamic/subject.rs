//! A request in the form in which webhooks and policies see it.

use bellwether_admission::{Attributes, Kind, Target};
use bellwether_api::admission;
use bellwether_kinds::Subresource;
use serde_json::{Map, Value, json};

use crate::context::RequestContext;
use crate::params::{DeleteOptions, WriteOptions};
use crate::request::Verb;
use crate::resource::{Part, Resource, Source};

/// What webhooks and policies see of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    /// The object of the resource, of which a part is written.
    Object(Part),
    /// What a subresource takes: an object of a kind of its own, such as a Scale.
    Sent(&'static Subresource),
}

impl From<Part> for Shown {
    fn from(part: Part) -> Self {
        match part {
            Part::Scale => Self::Sent(&bellwether_kinds::SCALE),
            part => Self::Object(part),
        }
    }
}

impl Shown {
    fn subresource(self) -> &'static str {
        match self {
            Self::Object(part) => part.subresource(),
            Self::Sent(part) => part.name,
        }
    }

    /// The resource as rules name it; none if it has no such subresource.
    fn target(self, resource: &Resource) -> Option<Target> {
        let name = self.subresource();
        let has_part = name.is_empty()
            || match &resource.source {
                Source::BuiltIn(kind) => kind.subresource(name).is_some(),
                Source::Custom(version) => match name {
                    "status" => version.has_status,
                    "scale" => version.scale.is_some(),
                    _ => false,
                },
            };
        let of_resource = (&*resource.group, &*resource.version, &*resource.kind);
        let (group, version, kind) = match self {
            Self::Object(_) => of_resource,
            Self::Sent(part) => part.kind.unwrap_or(of_resource),
        };
        has_part.then(|| Target {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            resource: resource.plural.to_string(),
            kind: Kind {
                group: group.to_owned(),
                version: version.to_owned(),
                name: kind.to_owned(),
            },
        })
    }
}

/// What is done to an object, and with which options.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    kind: admission::Operation,
    options: Value,
    dry_run: bool,
    /// True if the server gave the object its name.
    is_named_here: bool,
}

impl Operation {
    /// A new object; `is_named_here` if the server chose its name.
    pub(crate) fn create(cx: &RequestContext, options: &WriteOptions, is_named_here: bool) -> Self {
        Self {
            kind: admission::Operation::Create,
            options: written(cx, "CreateOptions"),
            dry_run: options.dry_run,
            is_named_here,
        }
    }

    /// A changed object.
    pub(crate) fn update(cx: &RequestContext, options: &WriteOptions) -> Self {
        Self {
            kind: admission::Operation::Update,
            options: written(cx, "UpdateOptions"),
            dry_run: options.dry_run,
            is_named_here: false,
        }
    }

    /// A deleted object.
    pub(crate) fn delete(options: &DeleteOptions) -> Self {
        Self {
            kind: admission::Operation::Delete,
            options: options.to_json(),
            dry_run: options.dry_run,
            is_named_here: false,
        }
    }

    /// A use of a subresource that is no object.
    pub(crate) fn connect() -> Self {
        Self {
            kind: admission::Operation::Connect,
            options: Value::Null,
            dry_run: false,
            is_named_here: false,
        }
    }

    /// Takes away what a new object gets only after mutating webhooks have seen it.
    pub(super) fn hide(&self, object: &mut Value) -> Hidden {
        let mut hidden = Map::new();
        if self.kind == admission::Operation::Create
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            let fields = ["uid", "creationTimestamp", "name"];
            let fields = &fields[..if self.is_named_here { 3 } else { 2 }];
            for field in fields {
                hidden.extend(metadata.remove(*field).map(|it| ((*field).to_owned(), it)));
            }
        }
        Hidden(hidden)
    }
}

/// Fields of the metadata that webhooks did not see.
pub(super) struct Hidden(Map<String, Value>);

impl Hidden {
    /// Gives them back to the object; a name that a webhook chose stays.
    pub(super) fn restore(self, object: &mut Value) {
        for (field, value) in self.0 {
            let current = &mut object["metadata"][&field];
            if field != "name" || current.as_str().unwrap_or_default().is_empty() {
                *current = value;
            }
        }
    }
}

/// Options of a write as its query has them.
fn written(cx: &RequestContext, kind: &str) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    let dry_run: Vec<&str> = cx.query.all("dryRun").collect();
    if !dry_run.is_empty() {
        options["dryRun"] = json!(dry_run);
    }
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = cx.query.get(field).filter(|value| !value.is_empty()) {
            options[field] = value.into();
        }
    }
    options
}

/// Everything about a request that [`Attributes`] borrow.
#[derive(Debug)]
pub(super) struct Subject {
    operation: Operation,
    target: Target,
    equivalents: Vec<Target>,
    subresource: &'static str,
    name: String,
    namespace: String,
    user: Value,
}

impl Subject {
    /// None if the resource has no such subresource.
    pub(super) fn new(cx: &RequestContext, shown: Shown, operation: &Operation) -> Option<Self> {
        let resources = cx.cluster.resources();
        let equivalents = resources.iter().filter(|it| {
            it.prefix == cx.resource.prefix && it.api_version != cx.resource.api_version
        });
        // The name of a collection is nobody's.
        let name = match cx.verb {
            Verb::DeleteCollection => "",
            _ => cx.name.as_deref().unwrap_or_default(),
        };
        Some(Self {
            operation: operation.clone(),
            target: shown.target(&cx.resource)?,
            equivalents: equivalents.filter_map(|it| shown.target(it)).collect(),
            subresource: shown.subresource(),
            name: name.to_owned(),
            namespace: cx.namespace().to_owned(),
            user: cx.identity.to_json(),
        })
    }

    pub(super) fn attributes<'a>(
        &'a self,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> Attributes<'a> {
        let of_object = |object: Option<&'a Value>| {
            let name = object?["metadata"]["name"].as_str();
            name.filter(|_| !self.operation.is_named_here)
        };
        let name = match (&*self.name, self.operation.kind) {
            ("", admission::Operation::Create) => of_object(object).unwrap_or_default(),
            (name, _) => name,
        };
        let is_namespace = self.target.group.is_empty() && self.target.resource == "namespaces";
        Attributes {
            operation: self.operation.kind,
            target: &self.target,
            equivalents: &self.equivalents,
            subresource: self.subresource,
            name,
            namespace: if is_namespace { name } else { &self.namespace },
            object,
            old,
            user: &self.user,
            options: &self.operation.options,
            dry_run: self.operation.dry_run,
        }
    }
}
