//! What makes a type a kind: its names, its columns, its definition.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::structural;

/// Scope of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In no namespace.
    Cluster,
    /// In a namespace.
    Namespaced,
}

impl Scope {
    /// The word that a definition uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// Type of the column: `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// JSONPath of the value.
    pub path: &'static str,
}

/// All names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindNames {
    /// The API group.
    pub group: &'static str,
    /// The version that is served and stored.
    pub version: &'static str,
    /// Further versions that are served. What is in `spec` and `status` is neither checked nor
    /// converted there: a peer that speaks such a version gets back what its like have written.
    pub other_versions: &'static [&'static str],
    /// The kind as objects name it.
    pub kind: &'static str,
    /// The resource as paths name it.
    pub plural: &'static str,
    /// The resource as people name it.
    pub singular: &'static str,
    /// Shorter names.
    pub short: &'static [&'static str],
    /// Groups of resources that it is listed with.
    pub categories: &'static [&'static str],
    /// Scope of its objects.
    pub scope: Scope,
    /// True if the status is a subresource.
    pub has_status: bool,
    /// Columns of `kubectl get`; empty for name and age.
    pub columns: &'static [Column],
}

impl KindNames {
    /// The group and version as objects name them.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// A kind that is served by a definition of ours.
pub trait Kind: Serialize + DeserializeOwned + JsonSchema {
    /// Names of the kind.
    const NAMES: KindNames;
}

/// The CustomResourceDefinition of a kind, ready to be sent to a server.
pub fn definition<K: Kind>() -> Value {
    let names = K::NAMES;
    let mut version = json!({
        "name": names.version,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": structural::root::<K>()},
    });
    if names.has_status {
        version["subresources"] = json!({"status": {}});
    }
    if !names.columns.is_empty() {
        let column = |column: &Column| json!({"name": column.name, "type": column.kind, "jsonPath": column.path});
        version["additionalPrinterColumns"] = names.columns.iter().map(column).collect();
    }
    let mut versions = vec![version.clone()];
    for name in names.other_versions {
        let mut other = version.clone();
        other["name"] = json!(name);
        other["storage"] = json!(false);
        other["schema"]["openAPIV3Schema"] =
            structural::opened(&version["schema"]["openAPIV3Schema"]);
        versions.push(other);
    }
    let mut all_names = json!({
        "kind": names.kind,
        "listKind": format!("{}List", names.kind),
        "plural": names.plural,
        "singular": names.singular,
    });
    if !names.short.is_empty() {
        all_names["shortNames"] = json!(names.short);
    }
    if !names.categories.is_empty() {
        all_names["categories"] = json!(names.categories);
    }
    let mut metadata = json!({"name": format!("{}.{}", names.plural, names.group)});
    if names.group.ends_with(".k8s.io") {
        // Servers refuse kinds of Kubernetes' own groups without this annotation.
        let approval = "unapproved, for clusters that have no definition of their own";
        metadata["annotations"] = json!({"api-approved.kubernetes.io": approval});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": names.group,
            "names": all_names,
            "scope": names.scope.as_str(),
            "versions": versions,
        },
    })
}

/// `apiVersion` and `kind` of an object of kind `K`: always written, and refused when another kind
/// is read.
///
/// It takes no space; an object has it as a flattened field.
pub struct TypeTag<K>(PhantomData<fn() -> K>);

impl<K> Default for TypeTag<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K> Clone for TypeTag<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for TypeTag<K> {}

impl<K> PartialEq for TypeTag<K> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<K: Kind> fmt::Debug for TypeTag<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", K::NAMES.api_version(), K::NAMES.kind)
    }
}

impl<K: Kind> Serialize for TypeTag<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tag = serializer.serialize_struct("TypeTag", 2)?;
        tag.serialize_field("apiVersion", &K::NAMES.api_version())?;
        tag.serialize_field("kind", K::NAMES.kind)?;
        tag.end()
    }
}

/// Fields read for a tag: items of a list may leave both out.
#[derive(Deserialize)]
struct Read {
    #[serde(default, rename = "apiVersion")]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

impl<'de, K: Kind> Deserialize<'de> for TypeTag<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let wanted = K::NAMES;
        let same = |found: &Option<String>, wanted: &str| {
            found.as_deref().is_none_or(|found| found == wanted)
        };
        if same(&read.api_version, &wanted.api_version()) && same(&read.kind, wanted.kind) {
            return Ok(Self::default());
        }
        Err(D::Error::custom(format_args!(
            "expected {} {}, found {} {}",
            wanted.api_version(),
            wanted.kind,
            read.api_version.unwrap_or_default(),
            read.kind.unwrap_or_default(),
        )))
    }
}

/// Declares a structure to be a [`Kind`]: its names, and what clients want to know of it.
///
/// The structure has the fields `types` and `metadata`; with `spec` and `status` it also has
/// fields of these names, of the types given.
macro_rules! kind {
    (
        $object:ident: $group:expr, $version:literal, $plural:literal, $singular:literal, $scope:ident;
        $(spec: $spec:ty;)?
        $(status: $status:ty;)?
        $(also_served: [$($other:literal),*];)?
        $(short: [$($short:literal),*];)?
        $(categories: [$($category:literal),*];)?
        $(columns: [$(($name:literal, $type:literal, $path:expr)),* $(,)?];)?
    ) => {
        impl $crate::Kind for $object {
            const NAMES: $crate::KindNames = $crate::KindNames {
                group: $group,
                version: $version,
                other_versions: &[$($($other),*)?],
                kind: stringify!($object),
                plural: $plural,
                singular: $singular,
                short: &[$($($short),*)?],
                categories: &[$($($category),*)?],
                scope: $crate::Scope::$scope,
                has_status: !stringify!($($status)?).is_empty(),
                columns: &[$($($crate::Column { name: $name, kind: $type, path: $path }),*)?],
            };
        }

        impl kube_core::Resource for $object {
            type DynamicType = ();
            type Scope = $crate::kind::scope::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($object).into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        $(
            impl kube_core::object::HasSpec for $object {
                type Spec = $spec;

                fn spec(&self) -> &$spec {
                    &self.spec
                }

                fn spec_mut(&mut self) -> &mut $spec {
                    &mut self.spec
                }
            }

            impl $object {
                /// An object of this name and content, without a status.
                pub fn new(name: impl Into<String>, spec: $spec) -> Self {
                    Self {
                        metadata: $crate::kind::named(name.into()),
                        spec,
                        ..Self::default()
                    }
                }
            }
        )?

        $(
            impl kube_core::object::HasStatus for $object {
                type Status = $status;

                fn status(&self) -> Option<&$status> {
                    self.status.as_ref()
                }

                fn status_mut(&mut self) -> &mut Option<$status> {
                    &mut self.status
                }
            }
        )?
    };
}
pub(crate) use kind;

/// The scopes as types, which clients use to refuse calls that make no sense.
pub(crate) mod scope {
    pub(crate) use k8s_openapi::{
        ClusterResourceScope as Cluster, NamespaceResourceScope as Namespaced,
    };
}

/// The metadata of an object that has only a name.
pub(crate) fn named(name: String) -> crate::meta::ObjectMeta {
    crate::meta::ObjectMeta {
        name: Some(name),
        ..crate::meta::ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use kube_core::Resource as _;
    use serde_json::json;

    use crate::cluster::{ClusterClaim, ClusterClaimSpec};

    #[test]
    fn new_objects_say_what_they_are() {
        let spec = ClusterClaimSpec {
            value: Some("Quay".into()),
            ..ClusterClaimSpec::default()
        };
        let claim = ClusterClaim::new("platform", spec);
        let written = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
            "kind": "ClusterClaim",
            "metadata": {"name": "platform"},
            "spec": {"value": "Quay"},
        });
        assert_eq!(serde_json::to_value(&claim).unwrap(), written);
    }

    #[test]
    fn items_of_lists_need_not_say_what_they_are() {
        let claim: ClusterClaim =
            serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
        assert_eq!(claim, ClusterClaim::new("x", ClusterClaimSpec::default()));
    }

    #[test]
    fn clients_know_the_path_of_a_kind() {
        assert_eq!(
            ClusterClaim::url_path(&(), None),
            "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims"
        );
    }
}
