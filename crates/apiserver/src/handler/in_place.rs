//! Patching a few items of a large object: what a patch does not touch is neither parsed nor checked again.
//!
//! Everything is done as for any patch, but to an [`Excerpt`] of the object. That gives the same result where the object
//! is known to be in order by the present schema, and nobody else wants to see all of it. Where there is any doubt,
//! where something is refused, and where somebody else was faster, the patch is applied to the whole object instead:
//! errors speak of places in that one.

use bellwether_patch::json_patch::JsonPatch;
use bellwether_store::{Entry, Expected, WriteError};
use serde_json::Value;

use crate::admission;
use crate::apart::LIGHT_BYTES;
use crate::body::decode_value;
use crate::context::RequestContext;
use crate::custom::CustomVersion;
use crate::handler::create::Written;
use crate::handler::update::{propose_to, settle};
use crate::object::{Draft, Excerpt, StoredObject};
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::repeats::Repeats;
use crate::resource::{Part, Source};
use crate::status::ApiError;

/// Objects that are shorter are parsed as a whole.
const WORTHWHILE: usize = 12 * 1024;
/// Objects that are longer as well: this is done where all requests are, and copies the text.
const LONGEST: usize = 8 * LIGHT_BYTES;

/// What a patch does to an object.
#[derive(Debug)]
enum Outcome {
    Unchanged,
    Changed(Draft),
}

/// A JSON patch of an object that is written in place if possible.
#[derive(Debug)]
pub(super) struct InPlace<'a> {
    cx: &'a RequestContext,
    part: Part,
    patch: &'a JsonPatch,
    version: &'a CustomVersion,
}

impl<'a> InPlace<'a> {
    /// Nothing where the patch has to be applied to whole objects in any case.
    pub(super) fn new(
        cx: &'a RequestContext,
        part: Part,
        options: &WriteOptions,
        patch: &'a JsonPatch,
    ) -> Option<Self> {
        let Source::Custom(version) = &cx.resource.source else {
            return None;
        };
        let is_plain = !options.dry_run
            && matches!(part, Part::Main | Part::Status)
            && version.at_rest.is_none()
            && version.scale.is_none();
        is_plain.then_some(Self {
            cx,
            part,
            patch,
            version,
        })
    }

    /// Applies the patch; nothing if it has to be applied to the whole object.
    pub(super) async fn write(
        &self,
        options: &WriteOptions,
        repeats: &Repeats,
        ownership: &Ownership,
    ) -> Result<Option<Written>, ApiError> {
        let keyspace = self.cx.cluster.keyspace();
        let Some(entry) = keyspace.get(&self.cx.key()?) else {
            return Ok(None);
        };
        let draft = match self.outcome(&entry, options, repeats, ownership) {
            None => return Ok(None),
            Some(Outcome::Unchanged) => return Ok(Some(Written::Stored(entry.value))),
            Some(Outcome::Changed(draft)) => draft,
        };
        let expected = Expected::Revision(entry.modified);
        let finish = move |revision| draft.finish(revision);
        match keyspace.put(&entry.key, expected, finish).await {
            Ok(entry) => Ok(Some(Written::Stored(entry.value))),
            Err(WriteError::Conflict { .. } | WriteError::NotFound) => Ok(None),
            Err(error) => Err(ApiError::unwritten(&error)),
        }
    }

    /// What becomes of the object; nothing if the whole of it has to be seen for that.
    fn outcome(
        &self,
        entry: &Entry<StoredObject>,
        options: &WriteOptions,
        repeats: &Repeats,
        ownership: &Ownership,
    ) -> Option<Outcome> {
        let number = self.version.schema.number();
        if entry.value.settled_by() != number || admission::sees_updates(self.cx, self.part) {
            return None;
        }
        let text = text_of(&entry.value)?;
        let places = self.patch.places()?;
        let compiled = self.version.schema.get();
        let mut excerpt = Excerpt::read(text, compiled.schema(), &places)?;
        let patch = self.patch.at_places(&excerpt.places(&places)?);
        let mut live = std::mem::take(&mut excerpt.value);
        live["apiVersion"] = self.cx.resource.api_version.as_ref().into();
        live["kind"] = self.cx.resource.kind.as_ref().into();
        let object = self.propose(&live, &patch, (options, repeats, ownership))?;
        if object == live {
            return Some(Outcome::Unchanged);
        }
        let draft = Draft::of_excerpt(&excerpt, &object, text)?;
        Some(Outcome::Changed(draft.settled_by(number)))
    }

    /// What becomes of an excerpt; nothing if something is wrong with it, or worth a warning.
    fn propose(
        &self,
        live: &Value,
        patch: &JsonPatch,
        (options, repeats, ownership): (&WriteOptions, &Repeats, &Ownership),
    ) -> Option<Value> {
        let (cx, part) = (self.cx, self.part);
        // Removing the last finalizer of a deleted object removes the object.
        if live["metadata"]["deletionTimestamp"].is_string() {
            return None;
        }
        let patched = patch.apply(live.clone()).ok()?;
        let validation = options.field_validation;
        let decoded = decode_value(&cx.resource, patched, repeats, validation).ok();
        let (object, _) = decoded.filter(|(_, warnings)| warnings.is_empty())?;
        let key = cx.key().ok()?;
        let object = propose_to(cx, part, &key, object, live, ownership).ok()?;
        settle(cx, part, object, live).ok()
    }

    /// Finds out whether an object that was written as a whole is in order, so that the next patch may be written in
    /// place.
    pub(super) fn settle(&self, written: &StoredObject) {
        let number = self.version.schema.number();
        if written.settled_by() == number || text_of(written).is_none() {
            return;
        }
        let compiled = self.version.schema.get();
        if self.patch.places().is_some() && compiled.is_settled(&self.cx.resource.read(written)) {
            written.settle(number);
        }
    }
}

/// The text of an object that is worth it.
fn text_of(stored: &StoredObject) -> Option<&[u8]> {
    let text = stored.whole_text()?;
    (WORTHWHILE..=LONGEST).contains(&text.len()).then_some(text)
}
