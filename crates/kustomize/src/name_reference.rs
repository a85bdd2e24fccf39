//! Lets references follow the names of the objects that they mean.

use std::collections::HashMap;

use bellwether_json::path::{items_at, str_at};
use serde_json::Value;

use crate::config::{BackReference, Config};
use crate::error::{Problem, Result};
use crate::field_spec::{Missing, visit_path};
use crate::id::{Gvk, Id};
use crate::resource::{Resource, scalar_text};
use crate::resource_list::ResourceList;

/// Updates all references to objects whose names have changed.
pub(crate) fn follow(list: &mut ResourceList, extra: &Config) -> Result<()> {
    let index = Index::new(&list.resources);
    if index.by_previous_name.is_empty() {
        return Ok(());
    }
    let references = || {
        let defaults = &Config::defaults().name_reference;
        defaults.iter().chain(&extra.name_reference)
    };
    for number in 0..list.resources.len() {
        let referrer = Referrer::new(&list.resources[number], number);
        let original = list.resources[number].original_id();
        let mut value = std::mem::take(&mut list.resources[number].value);
        let result = references()
            .try_for_each(|reference| update(&mut value, reference, &referrer, &original, &index));
        list.resources[number].value = value;
        result?;
    }
    Ok(())
}

fn update(
    value: &mut Value,
    reference: &BackReference,
    referrer: &Referrer,
    original: &Id,
    index: &Index,
) -> Result<()> {
    for field in &reference.referrers {
        if !original.gvk.is_selected_by(&field.gvk) {
            continue;
        }
        let is_role_reference = field.path.len() >= 2
            && field
                .path
                .ends_with(&["roleRef".to_owned(), "name".to_owned()]);
        let search = Search {
            index,
            referrer,
            target: &reference.target,
            role: is_role_reference
                .then_some(referrer.role.as_ref())
                .flatten(),
        };
        visit_path(value, &field.path, Missing::Leave, &mut |node| {
            search.set(node)
        })
        .map_err(|problem| {
            let path = field.path.join("/");
            let message = format!(
                "the reference {path} of {}: {}",
                referrer.id, problem.message
            );
            Problem::new(message)
        })?;
    }
    Ok(())
}

/// What is known of an object that can be referred to.
struct Candidate {
    id: Id,
    original_namespace: String,
    previous: Vec<Id>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

/// All objects by the names that they had.
struct Index {
    candidates: Vec<Candidate>,
    by_previous_name: HashMap<String, Vec<usize>>,
    by_original_namespace: HashMap<String, Vec<usize>>,
}

impl Index {
    fn new(resources: &[Resource]) -> Self {
        let mut by_previous_name: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_original_namespace: HashMap<String, Vec<usize>> = HashMap::new();
        let candidates = resources
            .iter()
            .enumerate()
            .map(|(number, resource)| {
                for previous in &resource.previous {
                    let numbers = by_previous_name.entry(previous.name.clone()).or_default();
                    if numbers.last() != Some(&number) {
                        numbers.push(number);
                    }
                }
                let original_namespace = resource.original_id().effective_namespace().to_owned();
                let numbers = by_original_namespace.entry(original_namespace.clone());
                numbers.or_default().push(number);
                Candidate {
                    id: resource.id(),
                    original_namespace,
                    previous: resource.previous.clone(),
                    prefixes: resource.prefixes.clone(),
                    suffixes: resource.suffixes.clone(),
                }
            })
            .collect();
        Self {
            candidates,
            by_previous_name,
            by_original_namespace,
        }
    }
}

/// The object whose references are updated.
struct Referrer {
    number: usize,
    id: Id,
    /// Namespaces of service accounts that a role binding names.
    subject_namespaces: Vec<String>,
    /// What the role reference says that it is.
    role: Option<Gvk>,
}

impl Referrer {
    fn new(resource: &Resource, number: usize) -> Self {
        let mut subject_namespaces = Vec::new();
        if resource.kind() == "RoleBinding" {
            for subject in items_at(&resource.value, &["subjects"]) {
                if str_at(subject, &["kind"]) == Some("ServiceAccount") {
                    subject_namespaces.extend(str_at(subject, &["namespace"]).map(str::to_owned));
                }
            }
        }
        let role = |field: &str| str_at(&resource.value, &["roleRef", field]);
        Self {
            number,
            id: resource.id(),
            subject_namespaces,
            role: role("apiGroup").zip(role("kind")).map(|(group, kind)| Gvk {
                group: group.to_owned(),
                version: String::new(),
                kind: kind.to_owned(),
            }),
        }
    }
}

/// What a reference says beside the name.
enum Scope {
    /// It is a name alone.
    Name,
    /// It is a mapping that could have a namespace.
    Mapping,
    /// It is a mapping with a namespace, which narrows the search.
    In(String),
}

/// One kind of reference of one object.
struct Search<'a> {
    index: &'a Index,
    referrer: &'a Referrer,
    target: &'a Gvk,
    role: Option<&'a Gvk>,
}

impl Search<'_> {
    /// Updates a name, a mapping with a name and a namespace, or a list of either.
    fn set(&self, node: &mut Value) -> Result<()> {
        match node {
            Value::Null => Ok(()),
            Value::Array(items) => items.iter_mut().try_for_each(|item| match item {
                Value::Array(_) => Err(Problem::new("expected a name or a mapping with a name")),
                item => self.set(item),
            }),
            Value::Object(_) => self.set_mapping(node),
            scalar => {
                let name = scalar_text(scalar);
                if let Some(found) = self.find(&name, &Scope::Name)? {
                    *scalar = Value::String(found.id.name.clone());
                }
                Ok(())
            }
        }
    }

    fn set_mapping(&self, node: &mut Value) -> Result<()> {
        let Some(name) = node.get("name").map(scalar_text) else {
            return Err(Problem::new("there is no `name` beside it"));
        };
        let scope = match node.get("namespace") {
            Some(namespace) => Scope::In(scalar_text(namespace)),
            None => Scope::Mapping,
        };
        let Some(found) = self.find(&name, &scope)? else {
            return Ok(());
        };
        if let Value::Object(members) = node {
            members.insert("name".to_owned(), Value::from(found.id.name.as_str()));
            if !found.id.namespace.is_empty() {
                let namespace = Value::from(found.id.namespace.as_str());
                members.insert("namespace".to_owned(), namespace);
            }
        }
        Ok(())
    }

    /// The object that had this name.
    fn find(&self, name: &str, scope: &Scope) -> Result<Option<&Candidate>> {
        let numbers = self.index.by_previous_name.get(name);
        let mut found: Vec<&Candidate> = numbers
            .into_iter()
            .flatten()
            .map(|number| &self.index.candidates[*number])
            .filter(|candidate| self.is_reachable(candidate) && self.is_target(candidate))
            .collect();
        if let Scope::In(namespace) = scope {
            let is_in = |candidate: &Candidate, own: &str| {
                !candidate.id.is_cluster_scoped() && own == namespace.as_str()
            };
            let any_originally = self.any_in_original_namespace(namespace);
            found.retain(|candidate| {
                if any_originally {
                    is_in(candidate, &candidate.original_namespace)
                } else {
                    is_in(candidate, candidate.id.effective_namespace())
                }
            });
        }
        if found.len() > 1 {
            found.retain(|candidate| self.shares_affixes(candidate, true));
        }
        if found.len() > 1 {
            found.retain(|candidate| self.shares_affixes(candidate, false));
        }
        let Some(first) = found.first().copied() else {
            return Ok(None);
        };
        let is_same = |other: &&Candidate| {
            other.id.name == first.id.name
                && (matches!(scope, Scope::Name) || other.id.namespace == first.id.namespace)
        };
        if found.iter().all(is_same) {
            return Ok(Some(first));
        }
        let ids: Vec<String> = found.iter().map(|found| found.id.to_string()).collect();
        let message = format!("found multiple possible referrals: {}", ids.join(", "));
        Err(Problem::new(message))
    }

    fn any_in_original_namespace(&self, namespace: &str) -> bool {
        let numbers = self.index.by_original_namespace.get(namespace);
        numbers
            .into_iter()
            .flatten()
            .any(|number| self.is_reachable(&self.index.candidates[*number]))
    }

    /// True if the referrer may refer to the object, as far as namespaces go.
    fn is_reachable(&self, candidate: &Candidate) -> bool {
        let own = &self.referrer.id;
        if own.is_cluster_scoped() || candidate.id.is_cluster_scoped() {
            return true;
        }
        let same = own.effective_namespace() == candidate.id.effective_namespace();
        same || (candidate.id.gvk.kind == "ServiceAccount"
            && self
                .referrer
                .subject_namespaces
                .contains(&candidate.id.namespace))
    }

    fn is_target(&self, candidate: &Candidate) -> bool {
        let was = |gvk: &Gvk| {
            candidate
                .previous
                .iter()
                .any(|id| id.gvk.is_selected_by(gvk))
        };
        was(self.target) && self.role.is_none_or(was)
    }

    /// True if the name of the object got the same prefixes and suffixes as that of the referrer.
    fn shares_affixes(&self, candidate: &Candidate, allow_none: bool) -> bool {
        let own = &self.index.candidates[self.referrer.number];
        let agree = |first: &[String], second: &[String]| {
            let shorter = first.len().min(second.len());
            let none = first.is_empty() || second.is_empty();
            let same_end = first[first.len() - shorter..] == second[second.len() - shorter..];
            (allow_none && none) || (same_end && (!none || first.len() == second.len()))
        };
        agree(&own.prefixes, &candidate.prefixes) && agree(&own.suffixes, &candidate.suffixes)
    }
}
