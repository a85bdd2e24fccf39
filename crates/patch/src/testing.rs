//! Schemas for tests, in few words.

use std::sync::Arc;

use bellwether_schema::{ListType, MapType, PatchStrategy, Schema, Type};
use serde_json::Value;

pub(crate) fn scalar(kind: Type) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

pub(crate) fn text() -> Schema {
    scalar(Type::String)
}

pub(crate) fn number() -> Schema {
    scalar(Type::Integer)
}

pub(crate) fn object<const N: usize>(properties: [(&str, Schema); N]) -> Schema {
    Schema {
        kind: Some(Type::Object),
        properties: properties
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), Arc::new(schema)))
            .collect(),
        ..Schema::default()
    }
}

pub(crate) fn map_of(values: Schema) -> Schema {
    Schema {
        kind: Some(Type::Object),
        additional_properties: Some(Arc::new(values)),
        ..Schema::default()
    }
}

pub(crate) fn atomic(schema: Schema) -> Schema {
    Schema {
        map_type: MapType::Atomic,
        ..schema
    }
}

pub(crate) fn free() -> Schema {
    Schema {
        kind: Some(Type::Object),
        preserve_unknown_fields: true,
        ..Schema::default()
    }
}

pub(crate) fn list(items: Schema) -> Schema {
    Schema {
        kind: Some(Type::Array),
        items: Some(Arc::new(items)),
        ..Schema::default()
    }
}

pub(crate) fn set(items: Schema) -> Schema {
    Schema {
        list_type: ListType::Set,
        ..list(items)
    }
}

pub(crate) fn keyed(keys: &[&str], items: Schema) -> Schema {
    Schema {
        list_type: ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect()),
        ..list(items)
    }
}

pub(crate) fn with_default(schema: Schema, default: Value) -> Schema {
    Schema {
        default: Some(default),
        ..schema
    }
}

pub(crate) fn merging(key: Option<&str>, schema: Schema) -> Schema {
    let strategy = PatchStrategy {
        merge: true,
        retain_keys: false,
        merge_key: key.map(str::to_owned),
    };
    Schema {
        patch: Some(strategy),
        ..schema
    }
}

pub(crate) fn retaining(schema: Schema) -> Schema {
    let strategy = PatchStrategy {
        retain_keys: true,
        ..schema.patch.clone().unwrap_or_default()
    };
    Schema {
        patch: Some(strategy),
        ..schema
    }
}

/// A kind with every way to merge.
pub(crate) fn gadget() -> Schema {
    let part = object([
        ("name", text()),
        ("size", number()),
        ("tags", set(text())),
        (
            "holes",
            keyed(&["id"], object([("id", number()), ("shape", text())])),
        ),
    ]);
    let outlet = object([
        ("port", number()),
        ("protocol", with_default(text(), "TCP".into())),
        ("note", text()),
    ]);
    object([
        (
            "spec",
            object([
                ("title", text()),
                ("count", number()),
                ("on", scalar(Type::Boolean)),
                ("labels", map_of(text())),
                ("unit", atomic(object([("x", text()), ("y", text())]))),
                ("frame", object([("colour", text()), ("width", number())])),
                ("steps", list(text())),
                ("tags", set(text())),
                ("parts", keyed(&["name"], part)),
                ("ports", keyed(&["port", "protocol"], outlet)),
                ("extra", free()),
            ]),
        ),
        ("status", object([("phase", text())])),
    ])
}

/// A kind with the patch strategies of built-in ones.
pub(crate) fn crate_of_bottles() -> Schema {
    let bottle = object([
        ("name", text()),
        ("content", text()),
        ("notes", merging(None, list(text()))),
        (
            "labels",
            merging(
                Some("at"),
                list(object([("at", number()), ("text", text())])),
            ),
        ),
    ]);
    let source = object([
        ("name", text()),
        ("tap", object([])),
        ("well", object([("depth", number())])),
    ]);
    object([(
        "spec",
        object([
            ("bottles", merging(Some("name"), list(bottle))),
            ("sources", retaining(merging(Some("name"), list(source)))),
            ("marks", merging(None, list(text()))),
            ("order", list(text())),
            ("sizes", map_of(text())),
            (
                "plan",
                retaining(object([
                    ("kind", text()),
                    ("fast", object([("speed", number())])),
                ])),
            ),
        ]),
    )])
}
