//! Lists, tables and lists of metadata, written item by item.

use std::sync::Arc;

use bellwether_json::yaml::to_yaml;
use bellwether_protobuf::ListEncoder;
use serde_json::{Value, json};

use crate::answer::{Writer, to_bytes};
use crate::frames::Frames;
use crate::negotiate::{Format, Projection};
use crate::object::{StoredObject, member};
use crate::resource::Resource;
use crate::table;

/// Writes a collection of objects in the form and projection that the client wants.
#[derive(Debug)]
pub(crate) struct Listing {
    resource: Arc<Resource>,
    writer: Writer,
    metadata: Value,
    form: Form,
    /// True until the first item is written.
    is_first: bool,
    /// The text of an object of which a part is wanted.
    text: Vec<u8>,
}

#[derive(Debug)]
enum Form {
    Json,
    Yaml,
    /// With the length of all items, which has to be known before the first one is written.
    Protobuf(ListEncoder, usize),
}

impl Listing {
    /// A list that is about to be written.
    pub(crate) fn new(resource: &Arc<Resource>, writer: &Writer, metadata: Value) -> Self {
        let encoder = || ListEncoder::new(&resource.api_version, &resource.kind);
        let form = match writer.representation.format {
            Format::Json => Form::Json,
            Format::Yaml => Form::Yaml,
            // Only where there is an encoder this form is agreed on.
            Format::Protobuf => encoder().map_or(Form::Json, |encoder| Form::Protobuf(encoder, 0)),
        };
        Self {
            resource: Arc::clone(resource),
            writer: writer.clone(),
            metadata,
            form,
            is_first: true,
            text: Vec::new(),
        }
    }

    /// The form in which it is written.
    pub(crate) fn format(&self) -> Format {
        match self.form {
            Form::Json => Format::Json,
            Form::Yaml => Format::Yaml,
            Form::Protobuf(..) => Format::Protobuf,
        }
    }

    /// True if all items have to be [measured](Self::measure) before anything is written.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.form, Form::Protobuf(..))
    }

    /// Adds up the length of an item.
    pub(crate) fn measure(&mut self, object: &Arc<StoredObject>) {
        let value = self.value(object);
        if let Form::Protobuf(encoder, length) = &mut self.form {
            self.text.clear();
            encoder.item(&value, &mut self.text);
            *length = length.saturating_add(self.text.len());
        }
    }

    /// Writes what stands before the items.
    pub(crate) fn begin(&self, out: &mut Frames) {
        let (resource, metadata) = (&self.resource, &self.metadata);
        out.text(match (&self.form, self.writer.representation.projection) {
            (Form::Protobuf(encoder, length), _) => encoder.head(
                &resource.api_version,
                &resource.list_kind,
                metadata,
                *length,
            ),
            (Form::Yaml, Projection::Table) => to_yaml(&json!({
                "apiVersion": TABLES, "kind": "Table", "metadata": metadata,
                "columnDefinitions": table::columns(resource),
            }))
            .into_bytes(),
            (Form::Yaml, _) => to_yaml(&json!({"apiVersion": self.api_version()})).into_bytes(),
            (Form::Json, Projection::Table) => format!(
                "{{\"kind\":\"Table\",\"apiVersion\":\"{TABLES}\",\"metadata\":{metadata},\
                 \"columnDefinitions\":{},\"rows\":[",
                table::columns(resource)
            )
            .into_bytes(),
            (Form::Json, _) => format!(
                "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
                self.kind(),
                self.api_version()
            )
            .into_bytes(),
        });
    }

    fn kind(&self) -> &str {
        match self.writer.representation.projection {
            Projection::Metadata => "PartialObjectMetadataList",
            _ => &self.resource.list_kind,
        }
    }

    fn api_version(&self) -> &str {
        match self.writer.representation.projection {
            Projection::Metadata => TABLES,
            _ => &self.resource.api_version,
        }
    }

    /// The field with the items.
    fn field(&self) -> &'static str {
        match self.writer.representation.projection {
            Projection::Table => "rows",
            _ => "items",
        }
    }

    /// Writes an item.
    pub(crate) fn item(&mut self, object: &Arc<StoredObject>, out: &mut Frames) {
        let is_first = std::mem::take(&mut self.is_first);
        match self.form {
            Form::Json => {
                if !is_first {
                    out.text(",");
                }
                self.json(object, out);
            }
            Form::Yaml => {
                if is_first {
                    out.text(format!("{}:\n", self.field()));
                }
                // Lists are not indented in the fields that hold them.
                out.text(to_yaml(&json!([self.value(object)])));
            }
            Form::Protobuf(encoder, _) => {
                let value = self.value(object);
                out.write(|out| encoder.item(&value, out));
            }
        }
    }

    /// Writes what stands behind the items.
    pub(crate) fn end(&self, out: &mut Frames) {
        match self.form {
            Form::Json => out.text("]}"),
            Form::Protobuf(..) => {}
            Form::Yaml => {
                if self.is_first {
                    out.text(format!("{}: []\n", self.field()));
                }
                if self.writer.representation.projection != Projection::Table {
                    let rest = json!({"kind": self.kind(), "metadata": self.metadata});
                    out.text(to_yaml(&rest));
                }
            }
        }
    }

    fn json(&mut self, object: &Arc<StoredObject>, out: &mut Frames) {
        match self.writer.representation.projection {
            Projection::Object => self.object(object, out),
            Projection::Table => out.write(|out| {
                table::write_row(&self.resource, object, &self.writer, &mut self.text, out);
            }),
            Projection::Metadata => out.write(|out| {
                write_metadata(&self.resource, object, &mut self.text, out);
            }),
        }
    }

    /// An item as a value, for forms that are made of one.
    fn value(&mut self, object: &Arc<StoredObject>) -> Value {
        let mut frames = Frames::default();
        self.json(object, &mut frames);
        let mut text = Vec::with_capacity(frames.len());
        while let Some(frame) = frames.next() {
            text.extend_from_slice(&frame);
        }
        // What is stored is JSON.
        serde_json::from_slice(&text).unwrap_or_default()
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

/// The version of tables and of lists of metadata.
const TABLES: &str = "meta.k8s.io/v1";

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
