//! A schema as it is written in a CustomResourceDefinition: every keyword, allowed or not.
//!
//! [`Document::parse`] reads JSON the way the API server decodes it: types are checked, `null` is
//! absence, unknown keywords are dropped and named. Whether the schema is acceptable is judged in
//! [`crate::definition`]; [`Document::to_schema`] makes the compact tree that requests are served
//! with, and [`Document::to_json`] writes what was read.

mod write;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::decode::{DecodeError, Mismatch};
use crate::model::Rule;

pub(crate) use write::{number, rule as rule_to_json};

/// How deep schemas may nest: far beyond any real one, and well within the stack.
const MAX_DEPTH: usize = 100;

/// A schema with every keyword that can be written, as the API's `JSONSchemaProps`.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the keyword of the same name")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own in OpenAPI"
)]
pub struct Document {
    pub id: String,
    pub schema: String,
    pub reference: Option<String>,
    pub description: String,
    pub kind: String,
    pub nullable: bool,
    pub format: String,
    pub title: String,
    pub default: Option<Value>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: String,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub multiple_of: Option<f64>,
    pub enumeration: Vec<Value>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<String>,
    pub items: Option<Items>,
    pub all_of: Vec<Document>,
    pub one_of: Vec<Document>,
    pub any_of: Vec<Document>,
    pub not: Option<Box<Document>>,
    pub properties: BTreeMap<String, Document>,
    pub additional_properties: Option<Additional>,
    pub pattern_properties: BTreeMap<String, Document>,
    pub dependencies: BTreeMap<String, Value>,
    pub additional_items: Option<Additional>,
    pub definitions: BTreeMap<String, Document>,
    pub external_docs: Option<Value>,
    pub example: Option<Value>,
    pub preserve_unknown_fields: Option<bool>,
    pub embedded_resource: bool,
    pub int_or_string: bool,
    pub list_map_keys: Vec<String>,
    pub list_type: Option<String>,
    pub map_type: Option<String>,
    pub rules: Vec<Rule>,
}

/// The value of `items`: one schema, or (never accepted) one for each position.
#[derive(Debug, Clone, PartialEq)]
pub enum Items {
    /// One schema for all items.
    Schema(Box<Document>),
    /// A schema for each position.
    Positions(Vec<Document>),
}

/// The value of `additionalProperties` and `additionalItems`.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// Anything, or nothing.
    Allowed(bool),
    /// What fits a schema.
    Schema(Box<Document>),
}

impl Document {
    /// Reads a schema; also names the keywords that are not known, by their path.
    pub fn parse(json: &Value) -> Result<(Self, Vec<String>), DecodeError> {
        let mut reader = Reader::default();
        let document = reader.document(json)?;
        reader.unknown.sort();
        Ok((document, reader.unknown))
    }

    /// The schema of the items, if there is exactly one for all.
    pub(crate) fn item_schema(&self) -> Option<&Document> {
        match &self.items {
            Some(Items::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of further properties, if there is one.
    pub(crate) fn additional_schema(&self) -> Option<&Document> {
        match &self.additional_properties {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }
}

/// Walks a document, remembering where it is.
#[derive(Default)]
struct Reader {
    /// Names of struct fields, for messages about types.
    fields: Vec<&'static str>,
    /// The path including map keys and indices, for unknown keywords.
    path: Vec<String>,
    unknown: Vec<String>,
    /// Inside `items` and `additionalProperties` unknown keywords are dropped without a word, because
    /// the API server decodes those leniently.
    lenient: usize,
    depth: usize,
}

type Read<T> = Result<T, DecodeError>;

impl Reader {
    fn document(&mut self, json: &Value) -> Read<Document> {
        let Value::Object(fields) = json else {
            return Err(self.mismatch(json, "v1.JSONSchemaProps"));
        };
        if self.depth >= MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        self.depth += 1;
        let mut document = Document::default();
        for (key, value) in fields {
            if value.is_null() {
                continue;
            }
            self.path.push(format!(".{key}"));
            let known = self.text_keyword(&mut document, key, value)?
                || self.limit_keyword(&mut document, key, value)?
                || self.structure_keyword(&mut document, key, value)?
                || self.extension_keyword(&mut document, key, value)?;
            if !known && self.lenient == 0 {
                self.unknown
                    .push(self.path.concat().trim_start_matches('.').to_owned());
            }
            self.path.pop();
        }
        self.depth -= 1;
        Ok(document)
    }

    fn text_keyword(&mut self, to: &mut Document, key: &str, value: &Value) -> Read<bool> {
        match key {
            "id" => to.id = self.text("id", value)?,
            "$schema" => to.schema = self.text("$schema", value)?,
            "$ref" => to.reference = Some(self.text("$ref", value)?),
            "description" => to.description = self.text("description", value)?,
            "type" => to.kind = self.text("type", value)?,
            "format" => to.format = self.text("format", value)?,
            "title" => to.title = self.text("title", value)?,
            "pattern" => to.pattern = self.text("pattern", value)?,
            "default" => to.default = Some(value.clone()),
            "example" => to.example = Some(value.clone()),
            "externalDocs" => to.external_docs = Some(value.clone()),
            "nullable" => to.nullable = self.flag("nullable", value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn limit_keyword(&mut self, to: &mut Document, key: &str, value: &Value) -> Read<bool> {
        match key {
            "maximum" => to.maximum = Some(self.float("maximum", value)?),
            "exclusiveMaximum" => to.exclusive_maximum = self.flag("exclusiveMaximum", value)?,
            "minimum" => to.minimum = Some(self.float("minimum", value)?),
            "exclusiveMinimum" => to.exclusive_minimum = self.flag("exclusiveMinimum", value)?,
            "maxLength" => to.max_length = Some(self.integer("maxLength", value)?),
            "minLength" => to.min_length = Some(self.integer("minLength", value)?),
            "maxItems" => to.max_items = Some(self.integer("maxItems", value)?),
            "minItems" => to.min_items = Some(self.integer("minItems", value)?),
            "uniqueItems" => to.unique_items = self.flag("uniqueItems", value)?,
            "multipleOf" => to.multiple_of = Some(self.float("multipleOf", value)?),
            "maxProperties" => to.max_properties = Some(self.integer("maxProperties", value)?),
            "minProperties" => to.min_properties = Some(self.integer("minProperties", value)?),
            "required" => to.required = self.texts("required", value)?,
            "enum" => match value {
                Value::Array(values) => to.enumeration.clone_from(values),
                other => return Err(self.field_mismatch("enum", other, "[]v1.JSON")),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn structure_keyword(&mut self, to: &mut Document, key: &str, value: &Value) -> Read<bool> {
        match key {
            "items" => to.items = Some(self.items(value)?),
            "allOf" => to.all_of = self.documents("allOf", value)?,
            "oneOf" => to.one_of = self.documents("oneOf", value)?,
            "anyOf" => to.any_of = self.documents("anyOf", value)?,
            "not" => {
                self.fields.push("not");
                to.not = Some(Box::new(self.document(value)?));
                self.fields.pop();
            }
            "properties" => to.properties = self.map("properties", value)?,
            "patternProperties" => to.pattern_properties = self.map("patternProperties", value)?,
            "definitions" => to.definitions = self.map("definitions", value)?,
            "additionalProperties" => {
                to.additional_properties = Some(self.additional("additionalProperties", value)?);
            }
            "additionalItems" => {
                to.additional_items = Some(self.additional("additionalItems", value)?);
            }
            "dependencies" => match value {
                Value::Object(entries) => {
                    to.dependencies = entries.clone().into_iter().collect();
                }
                other => {
                    let expected = "v1.JSONSchemaDependencies";
                    return Err(self.field_mismatch("dependencies", other, expected));
                }
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn extension_keyword(&mut self, to: &mut Document, key: &str, value: &Value) -> Read<bool> {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        const EMBEDDED: &str = "x-kubernetes-embedded-resource";
        match key {
            PRESERVE => to.preserve_unknown_fields = Some(self.flag(PRESERVE, value)?),
            EMBEDDED => to.embedded_resource = self.flag(EMBEDDED, value)?,
            "x-kubernetes-int-or-string" => {
                to.int_or_string = self.flag("x-kubernetes-int-or-string", value)?;
            }
            "x-kubernetes-list-map-keys" => {
                to.list_map_keys = self.texts("x-kubernetes-list-map-keys", value)?;
            }
            "x-kubernetes-list-type" => {
                to.list_type = Some(self.text("x-kubernetes-list-type", value)?);
            }
            "x-kubernetes-map-type" => {
                to.map_type = Some(self.text("x-kubernetes-map-type", value)?);
            }
            "x-kubernetes-validations" => to.rules = self.rules(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn items(&mut self, value: &Value) -> Read<Items> {
        self.lenient += 1;
        self.fields.push("items");
        let items = match value {
            Value::Object(_) => Items::Schema(Box::new(self.document(value)?)),
            Value::Array(positions) => {
                let mut documents = Vec::with_capacity(positions.len());
                for position in positions {
                    documents.push(self.document(position)?);
                }
                Items::Positions(documents)
            }
            _ => Items::Positions(Vec::new()),
        };
        self.fields.pop();
        self.lenient -= 1;
        Ok(items)
    }

    fn additional(&mut self, field: &'static str, value: &Value) -> Read<Additional> {
        self.lenient += 1;
        self.fields.push(field);
        let additional = match value {
            Value::Bool(allowed) => Additional::Allowed(*allowed),
            Value::Object(_) => Additional::Schema(Box::new(self.document(value)?)),
            _ => {
                return Err(DecodeError::Other(
                    "boolean or JSON schema expected".to_owned(),
                ));
            }
        };
        self.fields.pop();
        self.lenient -= 1;
        Ok(additional)
    }

    fn documents(&mut self, field: &'static str, value: &Value) -> Read<Vec<Document>> {
        let Value::Array(values) = value else {
            return Err(self.field_mismatch(field, value, "[]v1.JSONSchemaProps"));
        };
        self.fields.push(field);
        let mut documents = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            self.path.push(format!("[{index}]"));
            let document = if value.is_null() {
                Document::default()
            } else {
                self.document(value)?
            };
            documents.push(document);
            self.path.pop();
        }
        self.fields.pop();
        Ok(documents)
    }

    fn map(&mut self, field: &'static str, value: &Value) -> Read<BTreeMap<String, Document>> {
        let Value::Object(entries) = value else {
            return Err(self.field_mismatch(field, value, "map[string]v1.JSONSchemaProps"));
        };
        self.fields.push(field);
        let mut documents = BTreeMap::new();
        for (key, value) in entries {
            self.path.push(format!(".{key}"));
            let document = if value.is_null() {
                Document::default()
            } else {
                self.document(value)?
            };
            documents.insert(key.clone(), document);
            self.path.pop();
        }
        self.fields.pop();
        Ok(documents)
    }

    fn rules(&mut self, value: &Value) -> Read<Vec<Rule>> {
        const FIELD: &str = "x-kubernetes-validations";
        let Value::Array(entries) = value else {
            return Err(self.field_mismatch(FIELD, value, "v1.ValidationRules"));
        };
        self.fields.push(FIELD);
        let mut rules = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let Value::Object(fields) = entry else {
                return Err(self.mismatch(entry, "v1.ValidationRule"));
            };
            self.path.push(format!("[{index}]"));
            rules.push(self.rule(fields)?);
            self.path.pop();
        }
        self.fields.pop();
        Ok(rules)
    }

    fn rule(&mut self, fields: &Map<String, Value>) -> Read<Rule> {
        let mut rule = Rule::default();
        for (key, value) in fields {
            if value.is_null() {
                continue;
            }
            match key.as_str() {
                "rule" => rule.rule = self.rule_text("rule", value)?,
                "message" => rule.message = Some(self.rule_text("message", value)?),
                "messageExpression" => {
                    rule.message_expression = Some(self.rule_text("messageExpression", value)?);
                }
                "reason" => rule.reason = Some(self.rule_text("reason", value)?),
                "fieldPath" => rule.field_path = Some(self.rule_text("fieldPath", value)?),
                "optionalOldSelf" => {
                    let Value::Bool(flag) = value else {
                        return Err(self.rule_mismatch("optionalOldSelf", value, "bool"));
                    };
                    rule.optional_old_self = Some(*flag);
                }
                _ if self.lenient == 0 => {
                    let path = format!("{}.{key}", self.path.concat());
                    self.unknown.push(path.trim_start_matches('.').to_owned());
                }
                _ => {}
            }
        }
        Ok(rule)
    }

    fn rule_text(&mut self, field: &'static str, value: &Value) -> Read<String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.rule_mismatch(field, other, "string")),
        }
    }

    fn rule_mismatch(&mut self, field: &'static str, value: &Value, expected: &str) -> DecodeError {
        self.fields.push(field);
        // What decodes itself, as `items` does, hides the names of its structs.
        let structure = if self.lenient == 0 {
            "ValidationRule"
        } else {
            "JSONSchemaProps"
        };
        Mismatch::new(value, structure, &self.fields, expected).into()
    }

    fn text(&mut self, field: &'static str, value: &Value) -> Read<String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.field_mismatch(field, other, "string")),
        }
    }

    fn texts(&mut self, field: &'static str, value: &Value) -> Read<Vec<String>> {
        let Value::Array(values) = value else {
            return Err(self.field_mismatch(field, value, "[]string"));
        };
        values.iter().map(|value| self.text(field, value)).collect()
    }

    fn flag(&mut self, field: &'static str, value: &Value) -> Read<bool> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            other => Err(self.field_mismatch(field, other, "bool")),
        }
    }

    fn float(&mut self, field: &'static str, value: &Value) -> Read<f64> {
        match value.as_f64() {
            Some(number) => Ok(number),
            None => Err(self.field_mismatch(field, value, "float64")),
        }
    }

    fn integer(&mut self, field: &'static str, value: &Value) -> Read<i64> {
        match value.as_i64() {
            Some(number) => Ok(number),
            None => Err(self.field_mismatch(field, value, "int64")),
        }
    }

    fn field_mismatch(
        &mut self,
        field: &'static str,
        value: &Value,
        expected: &str,
    ) -> DecodeError {
        self.fields.push(field);
        self.mismatch(value, expected)
    }

    fn mismatch(&self, value: &Value, expected: &str) -> DecodeError {
        Mismatch::new(value, "JSONSchemaProps", &self.fields, expected).into()
    }
}
