//! Declared types of JSON: what an OpenAPI schema says about types, formats, identity in lists
//! and sizes, as far as CEL cares.
//!
//! [`DeclType::from_schema`] reads a structural schema. The result types the variable for the
//! checker ([`DeclType::cel_type`]), tells the evaluator how to look at the JSON, and gives the
//! cost estimator its bounds.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::escaping;
use crate::types::Type;

/// Largest request Kubernetes accepts, in bytes: the bound on everything that has no other.
const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Schemas nested deeper than this are not looked into; JSON readers stop at 128.
const MAX_DEPTH: usize = 128;

/// What is declared about a JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclType {
    /// An object with known fields.
    Object(ObjectDecl),
    /// An object used as a map, with values of one type.
    Map(MapDecl),
    /// An array.
    List(ListDecl),
    /// A string.
    String(StringDecl),
    /// A number.
    Double(Scalar),
    /// An integer.
    Int(Scalar),
    /// A boolean.
    Bool(Scalar),
    /// `x-kubernetes-int-or-string`: either, identified by looking.
    IntOrString(StringDecl),
    /// Something the schema does not describe: it can be compared as part of the whole, but
    /// expressions cannot name it.
    Preserved,
    /// Anything, with no schema: JSON as it is.
    Dyn,
}

/// An object with known fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObjectDecl {
    /// The fields by their JSON names.
    pub fields: BTreeMap<String, DeclType>,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Bytes of the smallest valid JSON.
    pub min_size: u64,
}

/// An object used as a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapDecl {
    /// The type of the values; keys are text.
    pub values: Box<DeclType>,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Most entries there can be.
    pub max_properties: u64,
}

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct ListDecl {
    /// The type of the elements.
    pub items: Box<DeclType>,
    /// When two elements are the same one.
    pub list_type: ListType,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Most elements there can be.
    pub max_items: u64,
}

/// `x-kubernetes-list-type`: what makes elements the same, for `==` and `+`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// Position.
    Atomic,
    /// Value; order does not matter.
    Set,
    /// The values of these fields, named as expressions name them; order does not matter.
    Map(Vec<String>),
}

/// A string.
#[derive(Debug, Clone, PartialEq)]
pub struct StringDecl {
    /// What the text means.
    pub format: StringFormat,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Most characters (octets for `byte`) there can be.
    pub max_length: u64,
}

/// Formats that change the CEL type of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringFormat {
    /// Text.
    Plain,
    /// `byte`: base64 of octets.
    Byte,
    /// `duration`.
    Duration,
    /// `date`: a timestamp at midnight UTC.
    Date,
    /// `date-time`: a timestamp.
    DateTime,
}

/// A value of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scalar {
    /// Whether null is allowed.
    pub nullable: bool,
}

impl DeclType {
    /// Reads a structural schema. `resource_root` says that the value is a whole resource, whose
    /// `apiVersion`, `kind` and `metadata.name` can be used though the schema need not list
    /// them. None if the schema gives no type expressions could use.
    pub fn from_schema(schema: &Json, resource_root: bool) -> Option<DeclType> {
        read(schema, resource_root, 0)
    }

    /// The type for the checker. `name` names the object types inside, as messages show them.
    /// None if expressions cannot use the value.
    pub fn cel_type(&self, name: &str) -> Option<Type> {
        Some(match self {
            DeclType::Object(object) => Type::object(
                name,
                object.fields.iter().filter_map(|(field, decl)| {
                    let escaped = escaping::escape(field)?;
                    let of = decl.cel_type(&format!("{name}.{escaped}"))?;
                    Some((escaped.into_owned(), of))
                }),
            ),
            DeclType::Map(map) => {
                Type::map(Type::String, map.values.cel_type(&format!("{name}.@elem"))?)
            }
            DeclType::List(list) => Type::list(list.items.cel_type(&format!("{name}.@idx"))?),
            DeclType::String(string) => match string.format {
                StringFormat::Plain => Type::String,
                StringFormat::Byte => Type::Bytes,
                StringFormat::Duration => Type::Duration,
                StringFormat::Date | StringFormat::DateTime => Type::Timestamp,
            },
            DeclType::Double(_) => Type::Double,
            DeclType::Int(_) => Type::Int,
            DeclType::Bool(_) => Type::Bool,
            DeclType::IntOrString(_) | DeclType::Dyn => Type::Dyn,
            DeclType::Preserved => return None,
        })
    }

    /// Whether null is allowed.
    pub fn is_nullable(&self) -> bool {
        match self {
            DeclType::Object(decl) => decl.nullable,
            DeclType::Map(decl) => decl.nullable,
            DeclType::List(decl) => decl.nullable,
            DeclType::String(decl) | DeclType::IntOrString(decl) => decl.nullable,
            DeclType::Double(decl) | DeclType::Int(decl) | DeclType::Bool(decl) => decl.nullable,
            DeclType::Preserved | DeclType::Dyn => true,
        }
    }

    /// Bytes of the smallest valid JSON.
    pub fn min_size(&self) -> u64 {
        match self {
            DeclType::Object(object) => object.min_size,
            DeclType::Map(_) | DeclType::List(_) => 2,
            DeclType::String(string) => match string.format {
                StringFormat::Plain | StringFormat::Byte => 2,
                StringFormat::Duration => 3,
                StringFormat::Date => 12,
                StringFormat::DateTime => 21,
            },
            DeclType::Bool(_) => 4,
            DeclType::Double(_)
            | DeclType::Int(_)
            | DeclType::IntOrString(_)
            | DeclType::Preserved
            | DeclType::Dyn => 1,
        }
    }

    /// Most characters, elements or entries there can be; 0 for what has none.
    pub(crate) fn max_elements(&self) -> u64 {
        match self {
            DeclType::Map(map) => map.max_properties,
            DeclType::List(list) => list.max_items,
            DeclType::String(string) | DeclType::IntOrString(string) => string.max_length,
            _ => 0,
        }
    }

    /// How often a value of this type can occur in one request: the factor by which Kubernetes
    /// multiplies the cost of a rule on it.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_size() + 1)
    }
}

fn read(schema: &Json, resource_root: bool, depth: usize) -> Option<DeclType> {
    if depth > MAX_DEPTH {
        return None;
    }
    let nullable = flag(schema, "nullable");
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(DeclType::IntOrString(StringDecl {
            format: StringFormat::Plain,
            nullable,
            max_length: match count(schema, "maxLength") {
                Some(length) => length.saturating_mul(4),
                None => MAX_REQUEST_BYTES - 2,
            },
        }));
    }
    match schema.get("type").and_then(Json::as_str) {
        Some("array") => read_list(schema, nullable, depth),
        Some("object") => read_object(schema, nullable, resource_root, depth),
        Some("string") => Some(DeclType::String(read_string(schema, nullable))),
        Some("boolean") => Some(DeclType::Bool(Scalar { nullable })),
        Some("number") => Some(DeclType::Double(Scalar { nullable })),
        Some("integer") => Some(DeclType::Int(Scalar { nullable })),
        _ if resource_root => read_object(schema, nullable, true, depth),
        _ => None,
    }
}

fn flag(schema: &Json, name: &str) -> bool {
    schema.get(name).and_then(Json::as_bool).unwrap_or(false)
}

/// A size limit; negative ones count as zero.
fn count(schema: &Json, name: &str) -> Option<u64> {
    let limit = schema.get(name)?;
    limit
        .as_u64()
        .or_else(|| limit.as_f64().map(|limit| limit.max(0.0)).map(as_count))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits are not negative, and casting saturates"
)]
fn as_count(limit: f64) -> u64 {
    limit as u64
}

fn read_list(schema: &Json, nullable: bool, depth: usize) -> Option<DeclType> {
    let items_schema = schema.get("items")?;
    let items = read(
        items_schema,
        flag(items_schema, "x-kubernetes-embedded-resource"),
        depth + 1,
    )?;
    let list_type = match schema.get("x-kubernetes-list-type").and_then(Json::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(
            schema
                .get("x-kubernetes-list-map-keys")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .filter_map(Json::as_str)
                .map(|key| escaping::escape(key).map_or_else(|| key.to_owned(), Into::into))
                .collect(),
        ),
        _ => ListType::Atomic,
    };
    let max_items = count(schema, "maxItems")
        .unwrap_or_else(|| (MAX_REQUEST_BYTES - 2) / (items.min_size() + 1));
    Some(DeclType::List(ListDecl {
        items: Box::new(items),
        list_type,
        nullable,
        max_items,
    }))
}

fn read_object(
    schema: &Json,
    nullable: bool,
    resource_root: bool,
    depth: usize,
) -> Option<DeclType> {
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        let values = read(
            values,
            flag(values, "x-kubernetes-embedded-resource"),
            depth + 1,
        )?;
        let max_properties = count(schema, "maxProperties")
            .unwrap_or_else(|| (MAX_REQUEST_BYTES - 2) / (values.min_size() + 6));
        return Some(DeclType::Map(MapDecl {
            values: Box::new(values),
            nullable,
            max_properties,
        }));
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let mut object = ObjectDecl {
        nullable,
        min_size: 2,
        ..ObjectDecl::default()
    };
    let properties = schema.get("properties").and_then(Json::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let embedded = flag(property, "x-kubernetes-embedded-resource");
        let Some(field) = read(property, embedded, depth + 1) else {
            object.fields.insert(name.clone(), DeclType::Preserved);
            continue;
        };
        if required.contains(&name.as_str()) && property.get("default").is_none() {
            // Quotes, colon and comma take four bytes.
            object.min_size += name.len() as u64 + field.min_size() + 4;
        }
        object.fields.insert(name.clone(), field);
    }
    if resource_root {
        add_resource_fields(&mut object);
    }
    Some(DeclType::Object(object))
}

/// The fields every resource has, whatever its schema says.
fn add_resource_fields(object: &mut ObjectDecl) {
    let text = || {
        DeclType::String(StringDecl {
            format: StringFormat::Plain,
            nullable: false,
            max_length: MAX_REQUEST_BYTES - 2,
        })
    };
    object.fields.insert("kind".to_owned(), text());
    object.fields.insert("apiVersion".to_owned(), text());
    let metadata = ObjectDecl {
        fields: [
            ("name".to_owned(), text()),
            ("generateName".to_owned(), text()),
        ]
        .into(),
        nullable: false,
        min_size: 2,
    };
    object
        .fields
        .insert("metadata".to_owned(), DeclType::Object(metadata));
}

fn read_string(schema: &Json, nullable: bool) -> StringDecl {
    let max_length = count(schema, "maxLength");
    let (format, max_length) = match schema.get("format").and_then(Json::as_str) {
        Some("byte") => (
            StringFormat::Byte,
            max_length.unwrap_or(MAX_REQUEST_BYTES - 2),
        ),
        Some("duration") => (StringFormat::Duration, 32),
        Some("date") => (StringFormat::Date, 12),
        Some("date-time") => (StringFormat::DateTime, 32),
        _ => (
            StringFormat::Plain,
            match max_length {
                // A character takes up to four bytes.
                Some(length) => length.saturating_mul(4),
                None => longest_enum_value(schema).unwrap_or(MAX_REQUEST_BYTES - 2),
            },
        ),
    };
    StringDecl {
        format,
        nullable,
        max_length,
    }
}

fn longest_enum_value(schema: &Json) -> Option<u64> {
    let values = schema.get("enum")?.as_array().filter(|v| !v.is_empty())?;
    let longest = values
        .iter()
        .filter_map(Json::as_str)
        .map(str::len)
        .max()
        .unwrap_or(0);
    Some(longest as u64)
}

#[cfg(test)]
mod tests;
