//! `metadata.managedFields` in and out.

use std::collections::HashMap;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::fieldset::{FieldSet, FieldSetError};

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells one entry from another. Appliers keep their entry when they change API version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ManagerId {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl ManagerId {
    pub(super) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        Self {
            manager: if manager.is_empty() {
                "unknown"
            } else {
                manager
            }
            .to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.to_owned(),
            },
            subresource: subresource.to_owned(),
        }
    }
}

/// What one manager owns.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: ManagerId,
    /// The version that the set is written in.
    pub(crate) api_version: String,
    /// RFC 3339 in UTC, so that text order is time order.
    pub(crate) time: Option<String>,
    pub(crate) set: FieldSet,
}

/// All entries of an object, each manager once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries(pub(crate) Vec<Entry>);

/// Why entries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManagedFieldsError {
    /// The operation is neither of the two.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// Sets mean nothing without their version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The format of the fields is not named.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// The format of the fields is not `FieldsV1`.
    #[error("invalid fieldsType {kind:?} in managed fields entry {index}")]
    FieldsType {
        /// What was given.
        kind: String,
        /// Which entry.
        index: usize,
    },
    /// A member has the wrong JSON type.
    #[error("managed fields entry {index}: {name} must be a string")]
    NotText {
        /// Which entry.
        index: usize,
        /// Which member of it.
        name: &'static str,
    },
    /// The list is not a list, or an entry not an object.
    #[error("managedFields must be a list of objects")]
    Shape,
    /// The set of fields cannot be read.
    #[error("error decoding versioned set: {0}")]
    Fields(#[from] FieldSetError),
}

/// Checks `metadata.managedFields` as sent by a client.
pub fn validate_entries(managed_fields: &Value) -> Result<(), ManagedFieldsError> {
    Entries::decode(managed_fields).map(drop)
}

impl Entries {
    /// The entries of a stored object.
    pub(super) fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        match object.pointer("/metadata/managedFields") {
            Some(managed_fields) => Self::decode(managed_fields),
            None => Ok(Self::default()),
        }
    }

    /// The entries that an update starts from: the client's where it may set them and they can be
    /// read, else the stored ones. Clients that do not know entries would lose them otherwise.
    pub(super) fn for_update(live: &Value, sent: Option<Value>, subresource: bool) -> Self {
        if let Some(sent) = sent.filter(|_| !subresource) {
            if is_reset(&sent) {
                return Self::default();
            }
            match Self::decode(&sent) {
                Ok(entries) if !entries.is_empty() => return entries,
                _ => {}
            }
        }
        Self::of(live).unwrap_or_default()
    }

    fn decode(managed_fields: &Value) -> Result<Self, ManagedFieldsError> {
        let items = match managed_fields {
            Value::Null => return Ok(Self::default()),
            Value::Array(items) => items,
            _ => return Err(ManagedFieldsError::Shape),
        };
        let mut entries: Vec<Entry> = Vec::with_capacity(items.len());
        let mut places: HashMap<ManagerId, usize> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let entry = decode_entry(index, item)?;
            if let Some(place) = places.get(&entry.id) {
                entries[*place] = entry;
            } else {
                places.insert(entry.id.clone(), entries.len());
                entries.push(entry);
            }
        }
        Ok(Self(entries))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, id: &ManagerId) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.id == *id)
    }

    pub(super) fn get_mut(&mut self, id: &ManagerId) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.id == *id)
    }

    pub(super) fn set_time(&mut self, id: &ManagerId, now: &str) {
        if let Some(entry) = self.get_mut(id) {
            entry.time = Some(now.to_owned());
        }
    }

    /// The wire form: appliers first, then by time, manager, version and subresource.
    pub(super) fn into_json(mut self) -> Vec<Value> {
        fn key(entry: &Entry) -> (Operation, Option<&str>, &str, &str, &str) {
            let id = &entry.id;
            let time = entry.time.as_deref();
            (
                id.operation,
                time,
                &id.manager,
                &entry.api_version,
                &id.subresource,
            )
        }
        self.0.sort_by(|left, right| key(left).cmp(&key(right)));
        self.0.into_iter().map(Entry::into_json).collect()
    }
}

impl Entry {
    fn into_json(self) -> Value {
        let mut members = Map::new();
        let mut text = |name: &str, value: String| {
            if !value.is_empty() {
                members.insert(name.to_owned(), Value::String(value));
            }
        };
        text("apiVersion", self.api_version);
        text("fieldsType", "FieldsV1".to_owned());
        text("manager", self.id.manager);
        text("operation", self.id.operation.name().to_owned());
        text("subresource", self.id.subresource);
        text("time", self.time.unwrap_or_default());
        members.insert("fieldsV1".to_owned(), self.set.to_json());
        Value::Object(members)
    }
}

fn decode_entry(index: usize, item: &Value) -> Result<Entry, ManagedFieldsError> {
    let members = item.as_object().ok_or(ManagedFieldsError::Shape)?;
    let text = |name: &'static str| match members.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(ManagedFieldsError::NotText { index, name }),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedFieldsError::Operation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(ManagedFieldsError::ApiVersion);
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError::MissingFieldsType(index)),
        other => {
            let kind = other.to_owned();
            return Err(ManagedFieldsError::FieldsType { kind, index });
        }
    }
    let set = match members.get("fieldsV1") {
        Some(fields) => FieldSet::from_json(fields)?,
        None => FieldSet::new(),
    };
    let mut id = ManagerId::new("", operation, api_version, text("subresource")?);
    text("manager")?.clone_into(&mut id.manager);
    let time = text("time")?;
    Ok(Entry {
        id,
        api_version: api_version.to_owned(),
        time: (!time.is_empty()).then(|| time.to_owned()),
        set,
    })
}

/// A client clears all entries with `[]`, or with `[{}]` where an empty list would not be sent.
fn is_reset(managed_fields: &Value) -> bool {
    match managed_fields.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(members)]) => members
            .values()
            .all(|member| member.is_null() || member.as_str().is_some_and(str::is_empty)),
        _ => false,
    }
}
