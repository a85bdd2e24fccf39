//! A schema as a list of fields, one line each, which can be read and compared.

use serde_json::Value;

/// A field of a schema.
pub(crate) struct Field {
    /// Where it is; `[]` stands for items of a list and `{}` for values of a map.
    pub(crate) path: String,
    /// Whether a person is told what it is.
    pub(crate) is_described: bool,
    facts: Vec<String>,
}

/// All fields of a definition, and how it is called and shown.
pub(crate) fn of(definition: &Value) -> String {
    let spec = &definition["spec"];
    let version = &spec["versions"][0];
    let mut lines = vec![
        format!("names {}", spec["names"]),
        format!(
            "group {} {} {}",
            spec["group"], version["name"], spec["scope"]
        ),
        format!("subresources {}", version["subresources"]),
    ];
    let columns = version["additionalPrinterColumns"].as_array();
    lines.extend(columns.into_iter().flatten().map(|column| {
        format!(
            "column {} {} {}",
            column["name"], column["type"], column["jsonPath"]
        )
    }));
    lines.push(String::new());
    lines.extend(fields(definition).into_iter().map(|field| {
        let words: Vec<String> = [vec![field.path], field.facts].concat();
        words.join(" ")
    }));
    lines.join("\n") + "\n"
}

/// The fields of a definition, in the order of their names.
pub(crate) fn fields(definition: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    properties(schema, "", &mut fields);
    fields
}

fn properties(schema: &Value, path: &str, fields: &mut Vec<Field>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let mut required = schema["required"].as_array().into_iter().flatten();
        field(property, &path, required.any(|one| one == name), fields);
    }
}

fn field(schema: &Value, path: &str, is_required: bool, fields: &mut Vec<Field>) {
    let mut facts: Vec<String> = schema["type"]
        .as_str()
        .map(str::to_owned)
        .into_iter()
        .collect();
    if is_required {
        facts.push("required".into());
    }
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "type"
            | "description"
            | "properties"
            | "required"
            | "items"
            | "additionalProperties" => {}
            "anyOf" if schema["x-kubernetes-int-or-string"] == true => {}
            other => {
                facts.push(format!(
                    "{}={value}",
                    other.trim_start_matches("x-kubernetes-")
                ));
            }
        }
    }
    fields.push(Field {
        path: path.to_owned(),
        is_described: schema["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        facts,
    });
    properties(schema, path, fields);
    if let Some(items) = schema.get("items") {
        field(items, &format!("{path}[]"), false, fields);
    }
    if let Some(values) = schema.get("additionalProperties") {
        field(values, &format!("{path}{{}}"), false, fields);
    }
}
