//! The schema of a version, compiled on first use.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bellwether_schema::{CompiledSchema, Schema};
use serde_json::Value;

use super::cache::versions;
use super::version::check_metadata;
use crate::object::StoredObject;

/// The schema of a version of a definition. It is compiled on first use: a fleet defines dozens of kinds, and most
/// clusters have objects of a few of them.
#[derive(Debug)]
pub(crate) struct LazySchema {
    /// The definition, which the store has as well.
    definition: Arc<StoredObject>,
    /// The name of the version.
    version: Box<str>,
    /// Tells it from all other schemas of this process; never zero.
    number: u32,
    compiled: OnceLock<CompiledSchema>,
}

/// The number of the next schema. Four billion definitions are more than a process compiles.
static NEXT: AtomicU32 = AtomicU32::new(1);

impl LazySchema {
    /// The schema of an entry of `spec.versions`; the error says why it is not a schema.
    pub(super) fn new(definition: &Arc<StoredObject>, version: &Value) -> Result<Self, String> {
        parse(version)?;
        Ok(Self {
            definition: Arc::clone(definition),
            version: version["name"].as_str().unwrap_or_default().into(),
            number: NEXT.fetch_add(1, Ordering::Relaxed).max(1),
            compiled: OnceLock::new(),
        })
    }

    /// A number that no other schema of this process has.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The schema with its patterns and rules compiled, for checking objects.
    pub(crate) fn get(&self) -> &CompiledSchema {
        self.compiled.get_or_init(|| {
            let schema = self.read().unwrap_or_else(|error| {
                // It was read before, so this does not happen. Nothing of an object is lost if it does.
                tracing::error!(error, "cannot read a schema");
                Schema {
                    preserve_unknown_fields: true,
                    ..Schema::default()
                }
            });
            CompiledSchema::compile(Arc::new(schema), check_metadata)
        })
    }

    fn read(&self) -> Result<Schema, String> {
        let definition = self.definition.to_untyped_value();
        let mut all = versions(&definition);
        let version = all.find(|version| version["name"] == *self.version);
        parse(version.ok_or("the version is gone")?)
    }
}

/// Reads the schema of an entry of `spec.versions`.
fn parse(version: &Value) -> Result<Schema, String> {
    let document = &version["schema"]["openAPIV3Schema"];
    bellwether_schema::parse(document).map_err(|error| error.to_string())
}
