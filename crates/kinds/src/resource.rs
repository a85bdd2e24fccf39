//! What there is to know about one built-in resource, as data: see [`Resource`].

use std::fmt;
use std::sync::Arc;

use bellwether_schema::{FieldErrors, Schema};
use jiff::Timestamp;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::catalog;

/// Everything that ordinary resources can do.
pub const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// What namespaces can do: everything but being deleted many at a time.
pub(crate) const NO_COLLECTION_VERBS: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];

/// What can only be sent, never read back.
pub(crate) const CREATE: &[&str] = &["create"];

/// What a part of an object can do.
pub(crate) const PART_VERBS: &[&str] = &["get", "patch", "update"];

/// The category that `kubectl get all` asks for.
pub(crate) const ALL: &[&str] = &["all"];

/// The category of things that extend the API.
pub(crate) const API_EXTENSIONS: &[&str] = &["api-extensions"];

/// One resource in one version: its names, what can be done with it, and its behaviour.
///
/// All of them are in [`crate::resources`]; the functions of this crate take one to know what to do.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a table of facts, which are independent of one another"
)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the group.
    pub version: &'static str,
    /// The kind, such as `Deployment`.
    pub kind: &'static str,
    /// The name in URLs, such as `deployments`.
    pub plural: &'static str,
    /// Short names that kubectl understands.
    pub short_names: &'static [&'static str],
    /// Categories that kubectl understands, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it, in alphabetical order.
    pub verbs: &'static [&'static str],
    /// Further endpoints of one object.
    pub subresources: &'static [Subresource],
    /// In which group and version objects are stored: versions that share it show the same objects.
    pub storage: Storage,
    /// Fields that a field selector may name, besides `metadata.name` and `metadata.namespace`.
    pub field_selectors: &'static [FieldSelector],
    /// Columns of `kubectl get`.
    pub columns: &'static [Column],
    /// Which names are valid.
    pub names: NameRule,
    /// When `metadata.generation` counts up.
    pub generation: Generation,
    /// Whether an update without `resourceVersion` is accepted, to overwrite whatever is there.
    pub unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub create_on_update: bool,
    /// Whether dependents lose their owner and stay if a delete request does not set a propagation
    /// policy.
    pub orphans_dependents: bool,
    /// Whether a delete answers with the object instead of a `Status`.
    pub returns_deleted: bool,
    /// How many seconds an object may take to end, from `gracePeriodSeconds` of the request and the
    /// live object. None for kinds whose objects end at once.
    pub grace_period: Option<fn(Option<i64>, &Value) -> i64>,

    /// Whether an update is checked like a creation, too, so that complaints about metadata are
    /// repeated.
    pub(crate) revalidates: bool,
    /// Whether the creator may set `status`, too (Nodes only).
    pub(crate) keeps_status: bool,
    pub(crate) schema: fn(&mut SchemaGenerator) -> schemars::Schema,
    pub(crate) type_name: fn() -> std::borrow::Cow<'static, str>,
    pub(crate) default: fn(&mut Value),
    pub(crate) prepare_create: fn(&mut Value, &Creation<'_>),
    pub(crate) prepare_update: fn(&mut Value, &Value),
    pub(crate) prepare_part: fn(&str, &mut Value, &Value, Timestamp),
    pub(crate) validate: fn(&Value, Option<&Value>, &mut FieldErrors),
    pub(crate) validate_part: fn(&str, &Value, &Value, &mut FieldErrors),
    pub(crate) row: fn(&Value, Timestamp) -> Vec<Value>,
    pub(crate) to_storage: fn(&mut Value),
    pub(crate) from_storage: fn(&mut Value),
}

impl Resource {
    /// A resource in a namespace with all verbs and no particular behaviour.
    pub(crate) const fn namespaced<T: JsonSchema>(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            short_names: &[],
            categories: &[],
            namespaced: true,
            verbs: ALL_VERBS,
            subresources: &[],
            storage: Storage { group, version },
            field_selectors: &[],
            columns: crate::columns::NAME_AND_AGE,
            names: NameRule::Subdomain,
            generation: Generation::None,
            unconditional_update: true,
            create_on_update: false,
            orphans_dependents: false,
            returns_deleted: false,
            grace_period: None,
            revalidates: false,
            keeps_status: false,
            schema: T::json_schema,
            type_name: T::schema_name,
            default: |_| {},
            prepare_create: |_, _| {},
            prepare_update: |_, _| {},
            prepare_part: |_, _, _, _| {},
            validate: |_, _, _| {},
            validate_part: |_, _, _, _| {},
            row: crate::columns::name_and_age,
            to_storage: |_| {},
            from_storage: |_| {},
        }
    }

    /// A resource outside namespaces with all verbs and no particular behaviour.
    pub(crate) const fn cluster<T: JsonSchema>(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        let mut resource = Self::namespaced::<T>(group, version, kind, plural);
        resource.namespaced = false;
        resource
    }

    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind of a list of these, such as `DeploymentList`.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The name for one of them, such as `deployment`.
    pub fn singular(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// Whether objects are only answered to, never stored (reviews, bindings).
    pub fn is_virtual(&self) -> bool {
        !self.verbs.contains(&"get")
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }

    /// Whether `status` is written through its own endpoint.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The name of the type in OpenAPI documents, such as `io.k8s.api.apps.v1.Deployment`.
    pub fn type_name(&self) -> String {
        (self.type_name)().into_owned()
    }

    /// The schema of one object, built at first use and shared from then on.
    pub fn schema(&self) -> Arc<Schema> {
        catalog::schema(self)
    }

    /// What a field selector over `label` compares with; `None` where the kind does not support it.
    pub fn field_selector(&self, label: &str) -> Option<&FieldSelector> {
        self.field_selectors
            .iter()
            .chain(META_SELECTORS)
            .find(|selector| selector.label == label)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.api_version(), self.plural)
    }
}

/// Where objects of a resource are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// The group that owns the stored objects.
    pub group: &'static str,
    /// The version in which they are stored.
    pub version: &'static str,
}

/// An endpoint below one object: `/status`, `/scale`, `/eviction`...
#[derive(Debug, Clone, Copy)]
pub struct Subresource {
    /// The last part of the URL.
    pub name: &'static str,
    /// Group, version and kind of what is read and written; `None` if it is the object itself.
    pub kind: Option<(&'static str, &'static str, &'static str)>,
    /// What can be done with it, in alphabetical order.
    pub verbs: &'static [&'static str],
}

/// The status of an object, written by anyone who fulfils the spec.
pub(crate) const STATUS: Subresource = Subresource {
    name: "status",
    kind: None,
    verbs: PART_VERBS,
};

/// A conversation with a container, which a node would hold.
pub(crate) const fn connection(name: &'static str, options: &'static str) -> Subresource {
    Subresource {
        name,
        kind: Some(("", "v1", options)),
        verbs: &["create", "get"],
    }
}

/// Requests that go on to what the object stands for.
pub(crate) const fn proxy(options: &'static str) -> Subresource {
    Subresource {
        name: "proxy",
        kind: Some(("", "v1", options)),
        verbs: &["create", "delete", "get", "patch", "update"],
    }
}

/// The number of replicas, in a form that is the same for all kinds.
pub const SCALE: Subresource = Subresource {
    name: "scale",
    kind: Some(("autoscaling", "v1", "Scale")),
    verbs: PART_VERBS,
};

/// A field that a field selector may name.
#[derive(Debug, Clone, Copy)]
pub struct FieldSelector {
    /// The name that a selector uses.
    pub label: &'static str,
    /// Where the value is; the first path that leads to something wins.
    pub paths: &'static [&'static [&'static str]],
    /// The value where nothing is there.
    pub absent: &'static str,
}

impl FieldSelector {
    /// The value in `object`, as a selector compares it.
    pub fn value(&self, object: &Value) -> String {
        for path in self.paths {
            let found = path
                .iter()
                .try_fold(object, |value, segment| value.get(segment));
            match found {
                Some(Value::String(text)) if !text.is_empty() => return text.clone(),
                Some(Value::Bool(flag)) => return flag.to_string(),
                Some(Value::Number(number)) => return number.to_string(),
                _ => {}
            }
        }
        self.absent.to_owned()
    }
}

/// What every kind can be selected by.
const META_SELECTORS: &[FieldSelector] = &[
    FieldSelector {
        label: "metadata.name",
        paths: &[&["metadata", "name"]],
        absent: "",
    },
    FieldSelector {
        label: "metadata.namespace",
        paths: &[&["metadata", "namespace"]],
        absent: "",
    },
];

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub kind: &'static str,
    /// `name` for the object's name, else empty.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

/// Which names objects of a kind may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123): the rule of most kinds.
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label that begins with a letter (RFC 1035).
    Label1035,
    /// Whatever can be one segment of a URL path.
    PathSegment,
}

/// When `metadata.generation` counts up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    None,
    /// It is 1 at creation and stays so.
    Constant,
    /// It counts changes outside `metadata` and `status`.
    Spec,
    /// It counts changes of annotations, too (Deployments only).
    SpecAndAnnotations,
    /// It counts changes of labels, too (EndpointSlices only).
    SpecAndLabels,
}

/// What the server has decided about an object before it is created.
#[derive(Debug, Clone, Copy)]
pub struct Creation<'a> {
    /// `metadata.uid` of the object to be.
    pub uid: &'a str,
    /// The time of creation.
    pub now: Timestamp,
    /// Who asks, as `UserInfo` (`username`, `uid`, `groups`, `extra`); certificate requests record
    /// it.
    pub user: &'a Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Resource, find, resources};

    #[test]
    fn deletion_differs_between_kinds() {
        let with = |property: fn(&Resource) -> bool| -> Vec<&str> {
            let found = resources().iter().filter(|it| property(it));
            let mut plurals: Vec<&str> = found.map(|it| it.plural).collect();
            plurals.sort_unstable();
            plurals
        };
        assert_eq!(with(|it| it.orphans_dependents), ["replicationcontrollers"]);
        assert_eq!(with(|it| it.grace_period.is_some()), ["pods"]);
        assert_eq!(
            with(|it| it.returns_deleted),
            [
                "persistentvolumeclaims",
                "persistentvolumes",
                "pods",
                "podtemplates",
                "resourcequotas",
                "serviceaccounts",
                "services",
            ]
        );
    }

    #[test]
    fn pods_have_time_to_end_while_a_node_has_them() {
        let pod = |node: &str, phase: &str| {
            json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": 30},
                "status": {"phase": phase}})
        };
        let grace = find("", "v1", "pods").and_then(|it| it.grace_period);
        let grace = grace.expect("pods have one");
        for (wanted, node, phase, seconds) in [
            (None, "n", "Running", 30),
            (Some(5), "n", "Running", 5),
            (Some(0), "n", "Running", 0),
            (Some(-3), "n", "Running", 1),
            (Some(5), "", "Pending", 0),
            (None, "n", "Succeeded", 0),
        ] {
            assert_eq!(grace(wanted, &pod(node, phase)), seconds, "{wanted:?}");
        }
    }
}
