//! The schema of `metadata`, which is the same for all kinds.

use std::sync::{Arc, LazyLock};

use bellwether_schema::{ListType, MapType, PatchStrategy, Schema, Type};

/// Object metadata, for kinds whose own schema says no more than that it is an object.
pub(super) static OBJECT_META: LazyLock<Schema> = LazyLock::new(object_meta);

/// A text, such as `apiVersion` and `kind`.
pub(super) static STRING: LazyLock<Schema> = LazyLock::new(|| scalar(Type::String));

fn object_meta() -> Schema {
    let text = || scalar(Type::String);
    let number = || scalar(Type::Integer);
    let finalizers = Schema {
        list_type: ListType::Set,
        patch: merged_by(None),
        ..list(text())
    };
    let owners = Schema {
        list_type: ListType::Map(vec!["uid".to_owned()]),
        patch: merged_by(Some("uid")),
        ..list(owner())
    };
    object([
        ("annotations", texts()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", number()),
        ("deletionTimestamp", time()),
        ("finalizers", finalizers),
        ("generateName", text()),
        ("generation", number()),
        ("labels", texts()),
        ("managedFields", list(scalar(Type::Object))),
        ("name", text()),
        ("namespace", text()),
        ("ownerReferences", owners),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ])
}

fn owner() -> Schema {
    let fields = object([
        ("apiVersion", scalar(Type::String)),
        ("blockOwnerDeletion", scalar(Type::Boolean)),
        ("controller", scalar(Type::Boolean)),
        ("kind", scalar(Type::String)),
        ("name", scalar(Type::String)),
        ("uid", scalar(Type::String)),
    ]);
    Schema {
        map_type: MapType::Atomic,
        ..fields
    }
}

fn scalar(kind: Type) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

fn time() -> Schema {
    Schema {
        format: Some("date-time".to_owned()),
        ..scalar(Type::String)
    }
}

fn texts() -> Schema {
    Schema {
        additional_properties: Some(Arc::new(scalar(Type::String))),
        ..scalar(Type::Object)
    }
}

fn list(items: Schema) -> Schema {
    Schema {
        items: Some(Arc::new(items)),
        ..scalar(Type::Array)
    }
}

fn object<const N: usize>(properties: [(&str, Schema); N]) -> Schema {
    let named = properties
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), Arc::new(schema)));
    Schema {
        properties: named.collect(),
        ..scalar(Type::Object)
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the field that it is for is optional"
)]
fn merged_by(merge_key: Option<&str>) -> Option<PatchStrategy> {
    Some(PatchStrategy {
        merge: true,
        retain_keys: false,
        merge_key: merge_key.map(str::to_owned),
    })
}
