//! The objects of a build, in order, each identity once.

use std::collections::HashSet;

use base64::Engine as _;
use bellwether_json::path::{object_at, remove};
use serde_json::{Map, Value};

use crate::error::{Problem, Result};
use crate::id::Id;
use crate::limits::MAX_RESOURCES;
use crate::resource::{Behavior, Resource, scalar_text};
use crate::selector::Selector;

/// Objects in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceList {
    pub(crate) resources: Vec<Resource>,
}

impl ResourceList {
    /// Adds objects; one that is there already is refused.
    pub(crate) fn append_all(&mut self, others: Vec<Resource>) -> Result<()> {
        if self.resources.len() + others.len() > MAX_RESOURCES {
            let message = format!("a build may have at most {MAX_RESOURCES} objects");
            return Err(Problem::new(message));
        }
        let mut known: HashSet<String> = self
            .resources
            .iter()
            .map(|known| key(&known.id()))
            .collect();
        for resource in others {
            let id = resource.id();
            if !known.insert(key(&id)) {
                let message = format!(
                    "may not add resource with an already registered id: {id}; \
                     remove one of them, or give it another name or namespace"
                );
                return Err(Problem::new(message));
            }
            self.resources.push(resource);
        }
        Ok(())
    }

    /// Adds what a generator made, or lets it take the place of what is there.
    pub(crate) fn absorb(&mut self, mut generated: Resource) -> Result<()> {
        let id = generated.id();
        let matching: Vec<usize> = self.indexes(|resource| resource.has_been(&id));
        match (matching.as_slice(), generated.behavior) {
            ([], Behavior::Create) => self.append_all(vec![generated]),
            ([], _) => {
                let message =
                    format!("{id} does not exist; a generator cannot merge or replace it");
                Err(Problem::new(message))
            }
            ([_], Behavior::Create) => {
                let message = format!(
                    "{id} exists; the generator needs `behavior: merge` or `behavior: replace`"
                );
                Err(Problem::new(message))
            }
            ([index], behavior) => {
                let old = &self.resources[*index];
                if behavior == Behavior::Merge {
                    merge_data(&mut generated, old)?;
                }
                inherit(&mut generated, old)?;
                self.resources[*index] = generated;
                Ok(())
            }
            _ => {
                let message = format!("several objects could accept what is generated for {id}");
                Err(Problem::new(message))
            }
        }
    }

    /// The only object that has or had this identity.
    pub(crate) fn find(&self, id: &Id) -> Result<usize> {
        match self.indexes(|resource| resource.has_been(id)).as_slice() {
            [index] => Ok(*index),
            [] => {
                let message = format!(
                    "no resource matches strategic merge patch {id}: correct its kind, name or \
                     namespace, or give the patch a `target`"
                );
                Err(Problem::new(message))
            }
            _ => {
                let message = format!("multiple matches for {id}: say which by its namespace");
                Err(Problem::new(message))
            }
        }
    }

    /// The objects that a selector selects.
    pub(crate) fn select(&self, selector: &Selector) -> Result<Vec<usize>> {
        let selector = selector.compile()?;
        Ok(self.indexes(|resource| selector.selects(resource)))
    }

    pub(crate) fn drop_empty(&mut self) {
        self.resources.retain(|resource| !resource.is_empty());
    }

    fn indexes(&self, matches: impl Fn(&Resource) -> bool) -> Vec<usize> {
        let resources = self.resources.iter().enumerate();
        resources
            .filter(|(_, resource)| !resource.is_empty() && matches(resource))
            .map(|(index, _)| index)
            .collect()
    }

    /// Fails if two objects have one identity.
    pub(crate) fn check_unique(&self, what: &str) -> Result<()> {
        let mut known = HashSet::new();
        for resource in &self.resources {
            let id = resource.id();
            if !known.insert(key(&id)) {
                let message = format!("{what} gives two objects the identity {id}");
                return Err(Problem::new(message));
            }
        }
        Ok(())
    }
}

/// Equal for identities that are one.
fn key(id: &Id) -> String {
    format!("{}|{}|{}", id.gvk, id.name, id.effective_namespace())
}

/// Takes over from an object what a generated one is to keep: name, history and metadata.
fn inherit(generated: &mut Resource, old: &Resource) -> Result<()> {
    for field in ["labels", "annotations"] {
        let own = generated.metadata(field);
        generated.set_metadata(field, old.metadata(field).into_iter().chain(own))?;
    }
    generated.set_name(old.name())?;
    generated.set_namespace(old.namespace())?;
    generated.previous.clone_from(&old.previous);
    generated.prefixes.clone_from(&old.prefixes);
    generated.suffixes.clone_from(&old.suffixes);
    generated.variables.clone_from(&old.variables);
    generated.needs_hash &= old.needs_hash;
    generated.behavior = old.behavior;
    if old.origin.is_some() {
        generated.origin.clone_from(&old.origin);
    }
    Ok(())
}

/// Adds the data of an object to what is generated, whose own data win.
fn merge_data(generated: &mut Resource, old: &Resource) -> Result<()> {
    let mut old_value = old.value.clone();
    if generated.kind() == "Secret" {
        encode_string_data(&mut old_value);
    }
    for field in ["data", "binaryData"] {
        let members = |value: &Value| object_at(value, &[field]).cloned().unwrap_or_default();
        let mut merged: Map<String, Value> = Map::new();
        for (key, value) in members(&old_value).iter().chain(&members(&generated.value)) {
            merged.insert(key.clone(), Value::String(scalar_text(value)));
        }
        if merged.is_empty() {
            remove(&mut generated.value, &[field]);
        } else {
            generated.set(&[field], Value::Object(merged))?;
        }
    }
    Ok(())
}

fn encode_string_data(secret: &mut Value) {
    let Some(Value::Object(plain)) = remove(secret, &["stringData"]) else {
        return;
    };
    if let Value::Object(members) = secret {
        let data = members
            .entry("data")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            for (key, value) in plain {
                let encoded = base64::engine::general_purpose::STANDARD.encode(scalar_text(&value));
                data.insert(key, Value::String(encoded));
            }
        }
    }
}
