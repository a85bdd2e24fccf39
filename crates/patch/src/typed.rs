//! Values with a schema: the ground under server-side apply.
//!
//! A [`Type`] says how a value merges: field by field, item by item, or as a whole. Where nothing is
//! known the type is deduced from the value: objects are granular, lists are owned as a whole.
//! The algorithms are in the modules below: [`mod@validate`], [`mod@compare`], [`mod@merge`],
//! [`mod@select`] (removing and extracting) and [`mod@fields`] (field sets of a value).

use bellwether_schema::{ListType, MapType, Schema, Type as JsonType};
use serde_json::Value;

use crate::path::PathElement;

pub(crate) mod compare;
pub(crate) mod fields;
pub(crate) mod merge;
mod object_meta;
pub(crate) mod select;
pub(crate) mod validate;

/// How the value at one place merges.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'s> {
    /// Described by a schema.
    Known {
        schema: &'s Schema,
        /// The root of an object, or an embedded one: it has `apiVersion`, `kind` and `metadata`
        /// even when its schema does not say so.
        resource: bool,
        /// Unknown fields are allowed here, because a parent said so.
        preserve: bool,
    },
    /// Unknown: objects field by field, lists as a whole.
    Deduced,
    /// Unknown, and owned as a whole whatever it is.
    Untyped,
}

/// Which of the three algorithms applies to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar,
    List,
    Map,
}

/// How the items of a list are distinguished.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Items<'s> {
    /// They are not: the list is one value.
    Atomic,
    Set,
    Keyed(&'s [String]),
}

/// A member of an object and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'s> {
    pub(crate) kind: Type<'s>,
    /// Named by the schema, as opposed to a key of a map.
    pub(crate) declared: bool,
    /// The schema allows a field of this name.
    pub(crate) allowed: bool,
}

/// The built-in type that is a number or a text, though its schema says neither.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The built-in type whose content is owned as a whole whatever it is.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

impl<'s> Type<'s> {
    /// The type of a whole object.
    pub(crate) fn root(schema: &'s Schema) -> Self {
        Self::Known {
            schema,
            resource: true,
            preserve: schema.preserve_unknown_fields,
        }
    }

    fn of(schema: &'s Schema, preserve: bool) -> Self {
        if schema.type_name.as_deref() == Some(RAW_EXTENSION) {
            return Self::Untyped;
        }
        Self::Known {
            schema,
            resource: schema.embedded_resource,
            preserve: preserve || schema.preserve_unknown_fields,
        }
    }

    /// The name of the type in messages: the last word of its published name.
    pub(crate) fn name(self) -> &'s str {
        match self {
            Self::Known { schema, .. } => {
                let name = schema.type_name.as_deref().unwrap_or_default();
                name.rsplit('.').next().unwrap_or_default()
            }
            Self::Deduced | Self::Untyped => "",
        }
    }

    /// The shape for a value: what it looks like if the type allows that, else what the type wants.
    pub(crate) fn shape(self, value: Option<&Value>) -> Shape {
        let wanted = match self {
            Self::Known {
                schema, resource, ..
            } => match schema.kind {
                _ if resource => Some(Shape::Map),
                None if is_any_scalar(schema) => Some(Shape::Scalar),
                None => None,
                Some(JsonType::Object) => Some(Shape::Map),
                Some(JsonType::Array) => Some(Shape::List),
                Some(_) => Some(Shape::Scalar),
            },
            Self::Deduced | Self::Untyped => None,
        };
        wanted.unwrap_or(match value {
            None | Some(Value::Null | Value::Object(_)) => Shape::Map,
            Some(Value::Array(_)) => Shape::List,
            Some(_) => Shape::Scalar,
        })
    }

    /// The shapes to handle for a pair of values: two where they differ.
    pub(crate) fn shapes(
        self,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> (Option<Shape>, Shape) {
        if left.is_none() || right.is_none() {
            return (None, self.shape(left.or(right)));
        }
        let (left_shape, right_shape) = (self.shape(left), self.shape(right));
        (
            (left_shape != right_shape).then_some(left_shape),
            right_shape,
        )
    }

    /// Whether an object is owned as a whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Known { schema, .. } => schema.map_type == MapType::Atomic,
            Self::Deduced => false,
            Self::Untyped => true,
        }
    }

    /// How list items are distinguished.
    pub(crate) fn items(self) -> Items<'s> {
        let Self::Known { schema, .. } = self else {
            return Items::Atomic;
        };
        match &schema.list_type {
            ListType::Set => Items::Set,
            ListType::Map(keys) => Items::Keyed(keys),
            // Built-in lists without a list type merge in apply as they do in strategic patches.
            ListType::Atomic => match &schema.patch {
                Some(patch) if patch.merge => match &patch.merge_key {
                    Some(key) => Items::Keyed(std::slice::from_ref(key)),
                    None => Items::Set,
                },
                _ => Items::Atomic,
            },
        }
    }

    /// The type of list items.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Known {
                schema, preserve, ..
            } => match &schema.items {
                Some(items) => Self::of(items, preserve),
                None => Self::Untyped,
            },
            Self::Deduced | Self::Untyped => Self::Untyped,
        }
    }

    /// The type of a member.
    pub(crate) fn field(self, name: &str) -> Field<'s> {
        let undeclared = |kind| Field {
            kind,
            declared: false,
            allowed: true,
        };
        let Self::Known {
            schema,
            resource,
            preserve,
        } = self
        else {
            return undeclared(match self {
                Self::Untyped => Self::Untyped,
                _ => Self::Deduced,
            });
        };
        let declared = |kind| Field {
            kind,
            declared: true,
            allowed: true,
        };
        let property = schema.properties.get(name);
        if resource {
            match name {
                // A bare `type: object`, as custom resources have it, says nothing.
                "metadata" if property.is_none_or(|known| known.properties.is_empty()) => {
                    return declared(Self::of(&object_meta::OBJECT_META, false));
                }
                "apiVersion" | "kind" if property.is_none() => {
                    return declared(Self::of(&object_meta::STRING, false));
                }
                _ => {}
            }
        }
        if let Some(property) = property {
            return declared(Self::of(property, preserve));
        }
        match &schema.additional_properties {
            Some(values) if !schema.closed => undeclared(Self::of(values, preserve)),
            None if !schema.closed && (preserve || schema.properties.is_empty()) => {
                undeclared(Self::Deduced)
            }
            _ => Field {
                kind: Self::Deduced,
                declared: false,
                allowed: false,
            },
        }
    }

    /// The path element that identifies a list item, or why it has none.
    pub(crate) fn element(self, item: &Value) -> Result<PathElement, String> {
        match self.items() {
            Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Items::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null"
                        .to_owned(),
                ),
                scalar => Ok(PathElement::Value(scalar.clone())),
            },
            Items::Keyed(keys) => self.keyed_element(keys, item),
        }
    }

    /// What a key is taken to be where an item leaves it out.
    fn default_of(self, key: &str) -> Option<Value> {
        let Type::Known { schema, .. } = self else {
            return None;
        };
        let property = schema.properties.get(key)?;
        // In the published schemas of built-in kinds, fields that are always written have the zero
        // value of their Go type as default.
        let is_zero =
            || schema.type_name.is_some() && schema.required.iter().any(|name| name == key);
        property.default.clone().or_else(|| match property.kind {
            Some(JsonType::String) if is_zero() => Some("".into()),
            Some(JsonType::Integer) if is_zero() => Some(0.into()),
            _ => None,
        })
    }

    fn keyed_element(self, keys: &[String], item: &Value) -> Result<PathElement, String> {
        let members = match item {
            Value::Object(members) => members,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => {
                return Err("associative list with keys may not have non-map elements".to_owned());
            }
        };
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let value = members.get(key).cloned();
            if let Some(value) = value.or_else(|| self.item().default_of(key)) {
                found.push((key.as_str().into(), value));
            }
        }
        if found.is_empty() && !keys.is_empty() {
            let names: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        Ok(PathElement::key(found))
    }
}

/// Whether a value may be a number as well as a text (`cpu: 1`, `port: http`).
fn is_any_scalar(schema: &Schema) -> bool {
    schema.type_name.as_deref() == Some(QUANTITY)
}

/// The members of an object; null and anything else have none.
pub(crate) fn members(value: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    match value {
        Some(Value::Object(members)) => Some(members),
        _ => None,
    }
}

/// The items of a list; null and anything else have none.
pub(crate) fn list(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}
