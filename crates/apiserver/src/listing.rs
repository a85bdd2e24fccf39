//! Lists, tables and lists of metadata, written item by item.

use std::sync::Arc;

use serde_json::Value;

use crate::answer::{Writer, to_bytes};
use crate::frames::Frames;
use crate::negotiate::Shape;
use crate::object::{StoredObject, member};
use crate::resource::Resource;
use crate::table;

/// Writes a collection of objects in the shape that the client wants.
#[derive(Debug)]
pub(crate) struct Listing {
    resource: Arc<Resource>,
    writer: Writer,
    /// True until the first item is written.
    is_first: bool,
    /// The text of an object of which a part is wanted.
    text: Vec<u8>,
}

impl Listing {
    /// Writes what stands before the items.
    pub(crate) fn begin(
        resource: &Arc<Resource>,
        writer: &Writer,
        metadata: &Value,
        out: &mut Frames,
    ) -> Self {
        out.text(match writer.representation.shape {
            Shape::Object => format!(
                "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
                resource.list_kind, resource.api_version
            ),
            Shape::Table => format!(
                "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\
                 \"columnDefinitions\":{},\"rows\":[",
                table::columns(resource)
            ),
            Shape::Metadata => format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\
                 \"metadata\":{metadata},\"items\":["
            ),
        });
        Self {
            resource: Arc::clone(resource),
            writer: writer.clone(),
            is_first: true,
            text: Vec::new(),
        }
    }

    /// Writes an item.
    pub(crate) fn item(&mut self, object: &Arc<StoredObject>, out: &mut Frames) {
        if !std::mem::take(&mut self.is_first) {
            out.text(",");
        }
        match self.writer.representation.shape {
            Shape::Object => self.object(object, out),
            Shape::Table => out.write(|out| {
                table::write_row(&self.resource, object, &self.writer, &mut self.text, out);
            }),
            Shape::Metadata => out.write(|out| {
                write_metadata(&self.resource, object, &mut self.text, out);
            }),
        }
    }

    /// Writes what stands behind the items.
    pub(crate) fn end(out: &mut Frames) {
        out.text("]}");
    }

    /// Items of built-in lists carry no type, those of custom resources do, as in Kubernetes.
    fn object(&self, object: &Arc<StoredObject>, out: &mut Frames) {
        let resource = &self.resource;
        if resource.converts() {
            let mut value = resource.read(object);
            if let Value::Object(fields) = &mut value
                && !resource.is_custom()
            {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            out.text(to_bytes(&value));
        } else if resource.is_custom() {
            out.typed(&resource.api_version, &resource.kind, object);
        } else {
            out.untyped(object);
        }
    }
}

/// Appends type and metadata of an object; `text` is where its text is put meanwhile.
pub(crate) fn write_metadata(
    resource: &Resource,
    object: &StoredObject,
    text: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    if resource.converts() {
        let partial = table::partial_metadata(&resource.read(object));
        out.extend_from_slice(&to_bytes(&partial));
        return;
    }
    text.clear();
    object.write_untyped(text);
    out.extend_from_slice(
        b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
    );
    out.extend_from_slice(member(text, "metadata").unwrap_or(b"{}"));
    out.push(b'}');
}
