//! One object on its way through a build, with what happened to it.

use bellwether_json::path::{self, str_at};
use bellwether_json::yaml::{Dialect, YamlOptions, from_yaml_with};
use serde_json::{Map, Value};

use crate::error::{Problem, Result};
use crate::id::{Gvk, Id};
use crate::origin::Origin;

/// What a generator does if the object is already there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Refuse.
    #[default]
    Create,
    /// Take the place of the object.
    Replace,
    /// Add to the data of the object.
    Merge,
}

/// An object with its history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resource {
    /// The object itself; null once a patch has deleted it.
    pub(crate) value: Value,
    /// What it was called before, oldest first.
    pub(crate) previous: Vec<Id>,
    /// Prefixes that its name got, oldest first.
    pub(crate) prefixes: Vec<String>,
    /// Suffixes that its name got, oldest first.
    pub(crate) suffixes: Vec<String>,
    pub(crate) behavior: Behavior,
    /// True if the name gets a hash of the content.
    pub(crate) needs_hash: bool,
    /// Variables that take their value from here.
    pub(crate) variables: Vec<String>,
    /// Where it comes from, if that is to be recorded.
    pub(crate) origin: Option<Origin>,
    /// What changed it, if that is to be recorded.
    pub(crate) transformations: Vec<Origin>,
}

impl Resource {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// Reads all objects of a file or an inline text; lists are opened.
    pub(crate) fn read_all(text: &str) -> Result<Vec<Self>> {
        let options = YamlOptions {
            dialect: Dialect::GoYamlV3,
            duplicate_keys: bellwether_json::yaml::DuplicateKeys::Error,
            ..YamlOptions::default()
        };
        let mut resources = Vec::new();
        for document in from_yaml_with(text, options)? {
            open_lists(document, &mut resources)?;
        }
        Ok(resources)
    }

    pub(crate) fn kind(&self) -> &str {
        str_at(&self.value, &["kind"]).unwrap_or_default()
    }

    pub(crate) fn api_version(&self) -> &str {
        str_at(&self.value, &["apiVersion"]).unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        str_at(&self.value, &["metadata", "name"]).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        str_at(&self.value, &["metadata", "namespace"]).unwrap_or_default()
    }

    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::of(&self.value)
    }

    /// What identifies the object now.
    pub(crate) fn id(&self) -> Id {
        Id {
            gvk: self.gvk(),
            name: self.name().to_owned(),
            namespace: self.namespace().to_owned(),
        }
    }

    /// What identified the object in the file that it comes from.
    pub(crate) fn original_id(&self) -> Id {
        self.previous.first().cloned().unwrap_or_else(|| self.id())
    }

    /// All names that the object has or had: the present one first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        std::iter::once(self.id()).chain(self.previous.iter().cloned())
    }

    pub(crate) fn has_been(&self, id: &Id) -> bool {
        self.id().is(id) || self.previous.iter().any(|previous| previous.is(id))
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    /// Remembers what the object is called, before that changes.
    pub(crate) fn remember_id(&mut self) {
        let mut id = self.id();
        let namespace = id.effective_namespace().to_owned();
        id.namespace = namespace;
        self.previous.push(id);
    }

    pub(crate) fn set_name(&mut self, name: &str) -> Result<()> {
        self.set(&["metadata", "name"], Value::from(name))
    }

    /// Sets the namespace; an empty one is removed.
    pub(crate) fn set_namespace(&mut self, namespace: &str) -> Result<()> {
        if namespace.is_empty() {
            path::remove(&mut self.value, &["metadata", "namespace"]);
            return Ok(());
        }
        self.set(&["metadata", "namespace"], Value::from(namespace))
    }

    pub(crate) fn set(&mut self, path: &[&str], value: Value) -> Result<()> {
        path::set(&mut self.value, path, value)
            .map_err(|error| Problem::new(format!("{}: {error}", self.id())))
    }

    /// The members of a map of the metadata, such as `labels`, with values as text.
    pub(crate) fn metadata(&self, field: &str) -> Vec<(String, String)> {
        let members = path::object_at(&self.value, &["metadata", field]);
        members.map_or_else(Vec::new, |members| {
            let pair = |(key, value): (&String, &Value)| (key.clone(), scalar_text(value));
            members.iter().map(pair).collect()
        })
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        path::get(&self.value, &["metadata", "annotations", key]).map(scalar_text)
    }

    /// Replaces a map of the metadata; an empty one is removed.
    pub(crate) fn set_metadata(
        &mut self,
        field: &str,
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<()> {
        let members: Map<String, Value> = pairs
            .into_iter()
            .map(|(key, value)| (key, Value::String(value)))
            .collect();
        if members.is_empty() {
            path::remove(&mut self.value, &["metadata", field]);
            return Ok(());
        }
        self.set(&["metadata", field], Value::Object(members))
    }
}

/// The text of a scalar; empty for lists and maps.
pub(crate) fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Null => value.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => {
                bellwether_json::number::go_general_float(float)
            }
            _ => number.to_string(),
        },
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Puts the items of lists such as `ConfigMapList` in the place of the list.
fn open_lists(value: Value, resources: &mut Vec<Resource>) -> Result<()> {
    if matches!(&value, Value::Object(members) if members.is_empty()) {
        return Ok(());
    }
    check_identity(&value)?;
    let is_list = str_at(&value, &["kind"]).is_some_and(|kind| kind.ends_with("List"));
    match value {
        Value::Object(mut members) if is_list && members.contains_key("items") => {
            match members.remove("items") {
                Some(Value::Array(items)) => {
                    for item in items {
                        open_lists(item, resources)?;
                    }
                    Ok(())
                }
                None | Some(Value::Null) => Ok(()),
                Some(_) => Err(Problem::new(
                    "`items` of a list has to be a list of objects",
                )),
            }
        }
        value => {
            resources.push(Resource::new(value));
            Ok(())
        }
    }
}

fn check_identity(value: &Value) -> Result<()> {
    if !value.is_object() {
        let found = path::type_name(value);
        let message =
            format!("expected an object with `kind` and `metadata.name`, found a {found}");
        return Err(Problem::new(message));
    }
    let kind = str_at(value, &["kind"]).unwrap_or_default();
    if kind.is_empty() {
        return Err(Problem::new("an object has no `kind`"));
    }
    let name = str_at(value, &["metadata", "name"]).unwrap_or_default();
    if name.is_empty() && !kind.ends_with("List") {
        let message = format!("an object of kind {kind} has no `metadata.name`");
        return Err(Problem::new(message));
    }
    Ok(())
}
