//! The types of objects that a cluster serves, and the names that people call them by.

use kube::Client;
use kube::core::ApiResource;
use serde_json::Value;

use crate::error::Error;
use crate::manifests::Manifest;
use crate::near::nearest;
use crate::request;

/// Discovery of everything in two answers.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A type of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The name in URLs, such as `deployments`.
    pub plural: String,
    /// The name of one, such as `deployment`.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Groups of types that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

impl Type {
    /// The value of `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// How messages call an object, such as `deployment.apps/web`.
    pub fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.qualified(&self.singular))
    }

    /// A name of the type with its group.
    pub fn qualified(&self, name: &str) -> String {
        if self.group.is_empty() {
            name.to_owned()
        } else {
            format!("{name}.{}", self.group)
        }
    }

    /// The path of a collection, or of one object.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let api_version = self.api_version();
        let mut segments = vec!["", root, &api_version];
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            segments.extend(["namespaces", namespace]);
        }
        segments.push(&self.plural);
        segments.extend(name);
        segments.join("/")
    }

    /// An object of the type, as messages identify it.
    pub(crate) fn identified(&self, name: &str, namespace: Option<&str>) -> String {
        let namespace = namespace.unwrap_or_default();
        let (group, version) = (&self.group, &self.version);
        format!(
            "Resource: {:?}, GroupVersionKind: \"{group}/{version}, Kind={}\"\nName: \"{name}\", Namespace: \"{namespace}\"",
            self.resource(),
            self.kind
        )
    }

    /// The type, as messages identify it.
    pub(crate) fn resource(&self) -> String {
        format!("{}/{}, Resource={}", self.group, self.version, self.plural)
    }

    /// The same for kube's dynamic clients.
    pub(crate) fn to_api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.plural == name
            || self.singular == name
            || self.kind.to_lowercase() == name
            || self.short_names.iter().any(|short| short == name)
    }
}

/// All types that a cluster serves, each in its preferred version first.
#[derive(Debug, Clone, Default)]
pub struct Types(Vec<Type>);

impl Types {
    /// Asks the cluster.
    pub async fn discover(client: &Client) -> Result<Self, Error> {
        let (core, groups) = futures::try_join!(
            request::get(client, "/api", DISCOVERY),
            request::get(client, "/apis", DISCOVERY)
        )?;
        Ok(Self::parse(&[core, groups]))
    }

    fn parse(answers: &[Value]) -> Self {
        let mut types = Vec::new();
        for group in answers.iter().flat_map(|answer| items(&answer["items"])) {
            let name = text(&group["metadata"]["name"]);
            for version in items(&group["versions"]) {
                let version_name = text(&version["version"]);
                let resources = items(&version["resources"]).iter();
                types.extend(resources.map(|resource| parse_type(&name, &version_name, resource)));
            }
        }
        Self(types)
    }

    /// The type that is meant by a name: plural, singular, short, or kind, with group or version
    /// after a dot where several have the same.
    pub fn find(&self, name: &str) -> Result<&Type, Error> {
        let lower = name.to_lowercase();
        let (short, group) = lower.split_once('.').unwrap_or((&lower, ""));
        let found = self
            .0
            .iter()
            .find(|kind| kind.is_called(&lower))
            .or_else(|| {
                self.0.iter().find(|kind| {
                    let versioned = format!("{}.{}", kind.version, kind.group);
                    kind.is_called(short)
                        && (kind.group == group || versioned.trim_end_matches('.') == group)
                })
            });
        found.ok_or_else(|| Error::NoType {
            name: name.to_owned(),
            meant: self.nearest(&lower),
        })
    }

    /// The type that somebody may have meant.
    fn nearest(&self, name: &str) -> Option<String> {
        let names = self.0.iter().flat_map(|kind| {
            let names = [&kind.plural, &kind.singular];
            names.into_iter().map(String::as_str)
        });
        nearest(name, names).map(str::to_owned)
    }

    /// The types that a word stands for: one, or a category such as `all`.
    pub fn find_all(&self, word: &str) -> Result<Vec<&Type>, Error> {
        let mut found: Vec<&Type> = Vec::new();
        for kind in &self.0 {
            let member = kind.categories.iter().any(|category| category == word);
            let known = found
                .iter()
                .any(|other| other.group == kind.group && other.plural == kind.plural);
            if member && !known {
                found.push(kind);
            }
        }
        if found.is_empty() {
            found.push(self.find(word)?);
        }
        Ok(found)
    }

    /// The type of an object, by its `apiVersion` and `kind`.
    pub(crate) fn of(&self, object: &Value) -> Result<&Type, Error> {
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let mut known = self.0.iter();
        let found = known.find(|known| known.kind == kind && known.api_version() == api_version);
        found.ok_or(Error::NoType {
            name: kind,
            meant: None,
        })
    }

    /// The type of an object of a manifest.
    pub(crate) fn of_manifest(&self, manifest: &Manifest) -> Result<&Type, Error> {
        let object = &manifest.object;
        self.of(object).map_err(|_| Error::NoKind {
            name: text(&object["metadata"]["name"]),
            namespace: text(&object["metadata"]["namespace"]),
            place: manifest.place.clone(),
            kind: text(&object["kind"]),
            version: text(&object["apiVersion"]),
        })
    }
}

fn parse_type(group: &str, version: &str, resource: &Value) -> Type {
    let kind = text(&resource["responseKind"]["kind"]);
    let singular = match text(&resource["singularResource"]) {
        empty if empty.is_empty() => kind.to_lowercase(),
        singular => singular,
    };
    Type {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: text(&resource["resource"]),
        singular,
        kind,
        short_names: words(&resource["shortNames"]),
        categories: words(&resource["categories"]),
        namespaced: resource["scope"] == "Namespaced",
        verbs: words(&resource["verbs"]),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(value: &Value) -> Vec<String> {
    items(value).iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types() -> Types {
        let resource = |plural: &str, kind: &str, short: &[&str]| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced",
                   "shortNames": short, "categories": ["all"], "verbs": ["get", "list"]})
        };
        Types::parse(&[
            json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
                resource("pods", "Pod", &["po"]), resource("events", "Event", &["ev"]),
            ]}]}]}),
            json!({"items": [
                {"metadata": {"name": "events.k8s.io"}, "versions": [{"version": "v1", "resources": [
                    resource("events", "Event", &["ev"]),
                ]}]},
                {"metadata": {"name": "autoscaling"}, "versions": [
                    {"version": "v2", "resources": [resource("hpas", "HPA", &[])]},
                    {"version": "v1", "resources": [resource("hpas", "HPA", &[])]},
                ]},
            ]}),
        ])
    }

    #[test]
    fn a_type_is_found_by_each_of_its_names() {
        let types = types();
        for (name, expected) in [
            ("pods", "v1"),
            ("Pod", "v1"),
            ("po", "v1"),
            ("events", "v1"),
            ("events.events.k8s.io", "events.k8s.io/v1"),
            ("hpas", "autoscaling/v2"),
            ("hpas.v1.autoscaling", "autoscaling/v1"),
        ] {
            assert_eq!(types.find(name).unwrap().api_version(), expected, "{name}");
        }
        let error = types.find("nodes").unwrap_err().to_string();
        assert_eq!(error, "the server doesn't have a resource type \"nodes\"");
        let error = types.find("pdos").unwrap_err().to_string();
        assert_eq!(
            error,
            "the server doesn't have a resource type \"pdos\"; did you mean pods?"
        );
    }

    #[test]
    fn a_category_is_all_its_types_in_their_preferred_versions() {
        let types = types();
        let found = types.find_all("all").unwrap();
        let names: Vec<_> = found.iter().map(|kind| kind.named("x")).collect();
        assert_eq!(
            names,
            [
                "pod/x",
                "event/x",
                "event.events.k8s.io/x",
                "hpa.autoscaling/x"
            ]
        );
        assert_eq!(found[3].version, "v2");
    }
}
