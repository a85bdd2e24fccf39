//! Role-based access control as a pure function: roles and bindings in, a decision out.

use std::collections::{BTreeSet, HashMap};

use bellwether_api::admission::Attributes;
use serde_json::Value;

use super::identity::{Identity, MASTERS};
use super::rule::PolicyRule;
use super::service_account::user_name;

/// Whether something is allowed, and by what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Whether it may happen.
    pub allowed: bool,
    /// The binding that allows it; empty if none does.
    pub reason: String,
}

/// The role that a binding gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Name of the role.
    pub name: String,
}

impl RoleRef {
    /// Reads `roleRef`.
    pub(crate) fn from_json(value: &Value) -> Self {
        Self {
            kind: text(&value["kind"]).to_owned(),
            name: text(&value["name"]).to_owned(),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[derive(Debug)]
struct Binding {
    role: RoleRef,
    /// Users and groups, as `Rbac` files the binding under them.
    users: Vec<String>,
    groups: Vec<String>,
    /// How reasons name those of `users` that are service accounts.
    accounts: HashMap<String, String>,
}

impl Binding {
    /// Reads a binding; `namespace` is empty for a ClusterRoleBinding.
    fn from_json(object: &Value, namespace: &str) -> Self {
        let mut binding = Self {
            role: RoleRef::from_json(&object["roleRef"]),
            users: Vec::new(),
            groups: Vec::new(),
            accounts: HashMap::new(),
        };
        for subject in object["subjects"].as_array().into_iter().flatten() {
            let name = text(&subject["name"]);
            match text(&subject["kind"]) {
                "User" => binding.users.push(name.to_owned()),
                "Group" => binding.groups.push(name.to_owned()),
                "ServiceAccount" => {
                    let own = text(&subject["namespace"]);
                    let namespace = if own.is_empty() { namespace } else { own };
                    if !namespace.is_empty() {
                        let user = user_name(namespace, name);
                        binding
                            .accounts
                            .insert(user.clone(), format!("{name}/{namespace}"));
                        binding.users.push(user);
                    }
                }
                _ => {}
            }
        }
        binding
    }

    /// Why the binding, of this name, lets somebody do something.
    fn describe(&self, namespace: &str, name: &str, identity: &Identity) -> String {
        let RoleRef { kind, name: role } = &self.role;
        let to = self.describe_subject(identity);
        if namespace.is_empty() {
            format!("RBAC: allowed by ClusterRoleBinding \"{name}\" of {kind} \"{role}\" to {to}")
        } else {
            format!(
                "RBAC: allowed by RoleBinding \"{name}/{namespace}\" of {kind} \"{role}\" to {to}"
            )
        }
    }

    fn describe_subject(&self, identity: &Identity) -> String {
        let user = &identity.user;
        if let Some(account) = self.accounts.get(user) {
            return format!("ServiceAccount \"{account}\"");
        }
        if self.users.contains(user) {
            return format!("User \"{user}\"");
        }
        let group = identity
            .groups
            .iter()
            .find(|group| self.groups.contains(group));
        format!("Group \"{}\"", group.map_or("", String::as_str))
    }
}

/// Values by namespace and name; the namespace is empty for those that are in none.
type ByName<T> = HashMap<String, HashMap<String, T>>;

/// Names of bindings by subject and namespace.
type BySubject = HashMap<String, HashMap<String, BTreeSet<String>>>;

/// The roles and bindings of a cluster, ready to be asked: what somebody may do is found by who they
/// are, however many bindings there are.
#[derive(Debug, Default)]
pub(crate) struct Rbac {
    roles: ByName<Vec<PolicyRule>>,
    bindings: ByName<Binding>,
    by_user: BySubject,
    by_group: BySubject,
}

impl Rbac {
    /// Takes in an object of the group, or its end; what is none of its four kinds is passed over.
    pub(crate) fn set(
        &mut self,
        plural: &str,
        namespace: &str,
        name: &str,
        object: Option<&Value>,
    ) {
        match plural {
            "clusterroles" | "roles" => {
                let roles = self.roles.entry(namespace.to_owned()).or_default();
                match object {
                    Some(object) => {
                        roles.insert(name.to_owned(), PolicyRule::list(&object["rules"]));
                    }
                    None => {
                        roles.remove(name);
                    }
                }
            }
            "clusterrolebindings" | "rolebindings" => {
                self.remove_binding(namespace, name);
                if let Some(object) = object {
                    self.add_binding(namespace, name, Binding::from_json(object, namespace));
                }
            }
            _ => {}
        }
    }

    fn add_binding(&mut self, namespace: &str, name: &str, binding: Binding) {
        let file = |index: &mut BySubject, subject: &str| {
            let namespaces = index.entry(subject.to_owned()).or_default();
            let names = namespaces.entry(namespace.to_owned()).or_default();
            names.insert(name.to_owned());
        };
        for user in &binding.users {
            file(&mut self.by_user, user);
        }
        for group in &binding.groups {
            file(&mut self.by_group, group);
        }
        let bindings = self.bindings.entry(namespace.to_owned()).or_default();
        bindings.insert(name.to_owned(), binding);
    }

    fn remove_binding(&mut self, namespace: &str, name: &str) {
        let bindings = self.bindings.get_mut(namespace);
        let Some(binding) = bindings.and_then(|bindings| bindings.remove(name)) else {
            return;
        };
        let unfile = |index: &mut BySubject, subject: &str| {
            let Some(namespaces) = index.get_mut(subject) else {
                return;
            };
            if let Some(names) = namespaces.get_mut(namespace) {
                names.remove(name);
                if names.is_empty() {
                    namespaces.remove(namespace);
                }
            }
            if namespaces.is_empty() {
                index.remove(subject);
            }
        };
        for user in &binding.users {
            unfile(&mut self.by_user, user);
        }
        for group in &binding.groups {
            unfile(&mut self.by_group, group);
        }
    }

    /// Whether `identity` may do what `wanted` says, and why.
    pub(crate) fn decide(&self, identity: &Identity, wanted: &Attributes<'_>) -> Decision {
        let allowing = self.allowing(identity, wanted);
        Decision {
            allowed: allowing.is_some() || is_master(identity),
            reason: allowing
                .filter(|_| !is_master(identity))
                .map(|(namespace, name, binding)| binding.describe(namespace, name, identity))
                .unwrap_or_default(),
        }
    }

    /// Whether `identity` may do what `wanted` says.
    pub(crate) fn allows(&self, identity: &Identity, wanted: &Attributes<'_>) -> bool {
        is_master(identity) || self.allowing(identity, wanted).is_some()
    }

    /// A binding that allows it, with its namespace and name.
    fn allowing<'a>(
        &'a self,
        identity: &'a Identity,
        wanted: &'a Attributes<'_>,
    ) -> Option<(&'a str, &'a str, &'a Binding)> {
        let full_resource = wanted.full_resource();
        for namespace in scopes(wanted.namespace) {
            for name in self.names(identity, namespace) {
                let Some(binding) = self.binding(namespace, name) else {
                    continue;
                };
                let mut rules = self.rules_of(&binding.role, namespace).iter();
                if rules.any(|rule| rule.allows(wanted, &full_resource)) {
                    return Some((namespace, name, binding));
                }
            }
        }
        None
    }

    /// The rules that hold for `identity` in a namespace, or everywhere if it is empty.
    pub(crate) fn rules_for(&self, identity: &Identity, namespace: &str) -> Vec<&PolicyRule> {
        let mut rules = Vec::new();
        for namespace in scopes(namespace) {
            // A binding counts once, however many of its subjects somebody is.
            let names: BTreeSet<&str> = self.names(identity, namespace).collect();
            for name in names {
                if let Some(binding) = self.binding(namespace, name) {
                    rules.extend(self.rules_of(&binding.role, namespace));
                }
            }
        }
        rules
    }

    /// The rules of a role that a binding in `namespace` names; `None` if there is no such role.
    pub(crate) fn referenced(&self, role: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        let namespace = match role.kind.as_str() {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        let roles = self.roles.get(namespace)?;
        roles.get(&role.name).map(Vec::as_slice)
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> &[PolicyRule] {
        self.referenced(role, namespace).unwrap_or_default()
    }

    fn binding(&self, namespace: &str, name: &str) -> Option<&Binding> {
        self.bindings.get(namespace)?.get(name)
    }

    /// The names of the bindings in one namespace that name somebody.
    fn names<'a>(
        &'a self,
        identity: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let user = self.by_user.get(&identity.user);
        let groups = identity
            .groups
            .iter()
            .filter_map(|group| self.by_group.get(group));
        user.into_iter()
            .chain(groups)
            .filter_map(move |namespaces| namespaces.get(namespace))
            .flatten()
            .map(String::as_str)
    }
}

/// Members of this group pass everywhere, also where there are no roles yet.
pub(crate) fn is_master(identity: &Identity) -> bool {
    identity.groups.iter().any(|group| group == MASTERS)
}

/// Where bindings are looked for: those of the whole cluster first.
fn scopes(namespace: &str) -> impl Iterator<Item = &str> {
    let own = (!namespace.is_empty()).then_some(namespace);
    std::iter::once("").chain(own)
}

#[cfg(test)]
mod tests;
