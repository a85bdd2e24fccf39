//! Role-based access control as a pure function: roles and bindings in, a decision out.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::identity::{Identity, MASTERS};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes<'a> {
    /// The verb in lower case.
    pub verb: &'a str,
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name; empty if `path` is asked for.
    pub resource: &'a str,
    /// Subresource, if any.
    pub subresource: &'a str,
    /// Name of the object, if known.
    pub name: &'a str,
    /// Namespace; empty for all, and for cluster-scoped resources.
    pub namespace: &'a str,
    /// Path of a request that is not about a resource.
    pub path: &'a str,
}

impl Attributes<'_> {
    /// The refusal as Kubernetes words it, after "is forbidden: " or "forbidden: ".
    pub(crate) fn refusal(&self, user: &str) -> String {
        if self.resource.is_empty() {
            return format!(
                "User \"{user}\" cannot {} path \"{}\"",
                self.verb, self.path
            );
        }
        let resource = self.full_resource();
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        format!(
            "User \"{user}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
            self.verb, self.group
        )
    }

    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// Whether something is allowed, and by what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Whether it may happen.
    pub allowed: bool,
    /// The binding that allows it; empty if none does.
    pub reason: String,
}

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources such as `pods`, `pods/log`, `*`, `*/scale`.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    pub resource_names: Vec<String>,
    /// Paths such as `/healthz` or `/metrics/*`.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Whether the rule covers the request.
    pub(crate) fn allows(&self, wanted: &Attributes<'_>) -> bool {
        if !has(&self.verbs, wanted.verb) {
            return false;
        }
        if wanted.resource.is_empty() {
            return self
                .non_resource_urls
                .iter()
                .any(|pattern| path_matches(pattern, wanted.path));
        }
        has(&self.api_groups, wanted.group)
            && self.allows_resource(wanted)
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|name| name == wanted.name))
    }

    fn allows_resource(&self, wanted: &Attributes<'_>) -> bool {
        let full = wanted.full_resource();
        self.resources.iter().any(|pattern| {
            pattern == "*"
                || *pattern == full
                || (!wanted.subresource.is_empty()
                    && pattern.strip_prefix("*/") == Some(wanted.subresource))
        })
    }
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|word| word == "*" || word == wanted)
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

/// Somebody to whom a binding gives a role.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    fn is(&self, identity: &Identity) -> bool {
        match self.kind.as_str() {
            "User" => self.name == identity.user,
            "Group" => identity.groups.contains(&self.name),
            "ServiceAccount" => {
                identity.user.strip_prefix("system:serviceaccount:")
                    == Some(&format!("{}:{}", self.namespace, self.name))
            }
            _ => false,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Debug)]
struct Binding {
    /// Namespace of a RoleBinding; `None` for a ClusterRoleBinding.
    namespace: Option<String>,
    name: String,
    subjects: Vec<Subject>,
    role: RoleRef,
}

impl Binding {
    fn describe(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!(
                "RBAC: allowed by RoleBinding \"{}/{namespace}\" of {} \"{}\"",
                self.name, self.role.kind, self.role.name
            ),
            None => format!(
                "RBAC: allowed by ClusterRoleBinding \"{}\" of ClusterRole \"{}\"",
                self.name, self.role.name
            ),
        }
    }
}

/// The roles and bindings of a cluster, ready to be asked.
#[derive(Debug, Default)]
pub(crate) struct Rbac {
    cluster_roles: HashMap<String, Vec<PolicyRule>>,
    /// By namespace and name.
    roles: HashMap<(String, String), Vec<PolicyRule>>,
    bindings: Vec<Binding>,
}

impl Rbac {
    /// Takes in an object of the group; what is none of its four kinds is passed over.
    pub(crate) fn add(&mut self, plural: &str, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        let namespace = text(&object["metadata"]["namespace"]);
        let rules = || Vec::deserialize(&object["rules"]).unwrap_or_default();
        match plural {
            "clusterroles" => {
                self.cluster_roles.insert(name, rules());
            }
            "roles" => {
                self.roles.insert((namespace, name), rules());
            }
            "clusterrolebindings" | "rolebindings" => self.bindings.push(Binding {
                namespace: (plural == "rolebindings").then_some(namespace),
                name,
                subjects: Vec::deserialize(&object["subjects"]).unwrap_or_default(),
                role: RoleRef::deserialize(&object["roleRef"]).unwrap_or_default(),
            }),
            _ => {}
        }
    }

    /// Whether `identity` may do what `wanted` says.
    pub(crate) fn decide(&self, identity: &Identity, wanted: &Attributes<'_>) -> Decision {
        if identity.groups.iter().any(|group| group == MASTERS) {
            return Decision {
                allowed: true,
                reason: String::new(),
            };
        }
        let binding = self
            .bindings_of(identity, wanted.namespace)
            .find(|(_, rules)| rules.iter().any(|rule| rule.allows(wanted)));
        match binding {
            Some((binding, _)) => Decision {
                allowed: true,
                reason: binding.describe(),
            },
            None => Decision::default(),
        }
    }

    /// The rules that hold for `identity` in a namespace, or everywhere if it is empty.
    pub(crate) fn rules_for<'a>(
        &'a self,
        identity: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a PolicyRule> {
        self.bindings_of(identity, namespace)
            .flat_map(|(_, rules)| rules)
    }

    fn bindings_of<'a>(
        &'a self,
        identity: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, &'a [PolicyRule])> {
        self.bindings
            .iter()
            .filter(move |binding| {
                binding
                    .namespace
                    .as_deref()
                    .is_none_or(|own| !own.is_empty() && own == namespace)
                    && binding.subjects.iter().any(|subject| subject.is(identity))
            })
            .map(|binding| (binding, self.rules_of(binding)))
    }

    fn rules_of(&self, binding: &Binding) -> &[PolicyRule] {
        let found = match (binding.role.kind.as_str(), &binding.namespace) {
            ("ClusterRole", _) => self.cluster_roles.get(&binding.role.name),
            ("Role", Some(namespace)) => self
                .roles
                .get(&(namespace.clone(), binding.role.name.clone())),
            _ => None,
        };
        found.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rbac() -> Rbac {
        let mut rbac = Rbac::default();
        let mut add = |plural: &str, object: Value| rbac.add(plural, &object);
        add(
            "clusterroles",
            json!({"metadata": {"name": "reader"}, "rules": [
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps", "*/scale"]},
                {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
            ]}),
        );
        add(
            "roles",
            json!({"metadata": {"name": "one", "namespace": "a"}, "rules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"], "resourceNames": ["only"]},
            ]}),
        );
        add(
            "clusterrolebindings",
            json!({"metadata": {"name": "all"},
            "subjects": [{"kind": "Group", "name": "readers"}],
            "roleRef": {"kind": "ClusterRole", "name": "reader"}}),
        );
        add(
            "rolebindings",
            json!({"metadata": {"name": "sa", "namespace": "a"},
            "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "b"}],
            "roleRef": {"kind": "Role", "name": "one"}}),
        );
        rbac
    }

    #[track_caller]
    fn check(identity: &Identity, wanted: &Attributes<'_>, allowed: bool) {
        assert_eq!(
            rbac().decide(identity, wanted).allowed,
            allowed,
            "{identity:?} {wanted:?}"
        );
    }

    #[test]
    fn a_cluster_binding_holds_in_every_namespace() {
        let reader = Identity::authenticated("ann", ["readers".to_owned()]);
        let list = Attributes {
            verb: "list",
            resource: "configmaps",
            namespace: "x",
            ..Default::default()
        };
        check(&reader, &list, true);
        check(
            &reader,
            &Attributes {
                namespace: "",
                ..list
            },
            true,
        );
        check(
            &reader,
            &Attributes {
                verb: "delete",
                ..list
            },
            false,
        );
        check(
            &reader,
            &Attributes {
                group: "apps",
                ..list
            },
            false,
        );
        check(
            &reader,
            &Attributes {
                resource: "deployments",
                subresource: "scale",
                ..list
            },
            true,
        );
        check(
            &reader,
            &Attributes {
                verb: "get",
                resource: "",
                path: "/logs/x",
                ..list
            },
            true,
        );
        check(
            &reader,
            &Attributes {
                verb: "get",
                resource: "",
                path: "/metrics/x",
                ..list
            },
            false,
        );
        check(&Identity::authenticated("bob", []), &list, false);
    }

    #[test]
    fn a_role_holds_in_its_own_namespace_for_the_names_it_lists() {
        let bot = Identity::authenticated("system:serviceaccount:b:bot", []);
        let get = Attributes {
            verb: "get",
            resource: "secrets",
            namespace: "a",
            name: "only",
            ..Default::default()
        };
        check(&bot, &get, true);
        check(
            &bot,
            &Attributes {
                namespace: "b",
                ..get
            },
            false,
        );
        check(
            &bot,
            &Attributes {
                name: "other",
                ..get
            },
            false,
        );
        check(&bot, &Attributes { name: "", ..get }, false);
        let other = Identity::authenticated("system:serviceaccount:a:bot", []);
        check(&other, &get, false);
    }

    #[test]
    fn refusals_read_as_in_kubernetes() {
        let wanted = Attributes {
            verb: "get",
            group: "apps",
            resource: "deployments",
            namespace: "x",
            ..Default::default()
        };
        assert_eq!(
            wanted.refusal("bob"),
            "User \"bob\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"x\""
        );
        assert_eq!(
            Attributes {
                namespace: "",
                subresource: "scale",
                ..wanted
            }
            .refusal("bob"),
            "User \"bob\" cannot get resource \"deployments/scale\" in API group \"apps\" at the cluster scope"
        );
    }
}
