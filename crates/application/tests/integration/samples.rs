//! Values for parameters of definitions, made from what their documentation says.

use bellwether_application::document::Parameter;
use serde_json::{Map, Value, json};

/// A part of a path: a field, any field, or any element.
fn parts(path: &str) -> Vec<String> {
    path.replace("[]", ".[]")
        .split('.')
        .map(str::to_owned)
        .collect()
}

/// The parameters of a definition.
pub(crate) struct Samples<'a> {
    definition: &'a str,
    parameters: &'a [Parameter],
    component: &'a str,
}

/// Values of parameters whose documentation does not say what has to be in them.
fn special(definition: &str, path: &str) -> Option<Value> {
    match (definition, path) {
        ("k8s-objects", "objects") => {
            Some(json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}}]))
        }
        ("json-patch", "operations") => {
            Some(json!([{"op": "add", "path": "/spec/paused", "value": true}]))
        }
        ("ref-objects", "objects") => Some(json!([{"resource": "configmap", "name": "settings"}])),
        _ => None,
    }
}

/// Has to be given, or is needed to tell containers apart.
fn is_needed(parameter: &Parameter) -> bool {
    parameter.required || parameter.path.ends_with("].containerName")
}

impl<'a> Samples<'a> {
    /// Samples for a component or trait of a component of that name.
    pub(crate) fn new(
        definition: &'a str,
        parameters: &'a [Parameter],
        component: &'a str,
    ) -> Self {
        Self {
            definition,
            parameters,
            component,
        }
    }

    /// Only what has to be given.
    pub(crate) fn minimal(&self) -> Value {
        self.object("", &is_needed)
    }

    /// Everything that can be given at once: of several shapes, the first.
    pub(crate) fn full(&self) -> Value {
        self.object("", &|parameter| !self.is_other_shape(&parameter.path))
    }

    /// What has to be given, and one parameter with what is around it.
    pub(crate) fn with(&self, path: &str) -> Value {
        self.with_value(path, None)
    }

    /// The same with a value of the wrong type.
    pub(crate) fn with_wrong(&self, path: &str) -> Value {
        let parameter = self.find(path);
        let is_text =
            parameter.type_text.contains("string") || parameter.type_text.starts_with(['"', '=']);
        let is_several =
            parameter.type_text.contains("list") || parameter.type_text.contains("map");
        let wrong = if is_text && !is_several {
            json!(17)
        } else {
            json!("wrong")
        };
        self.with_value(path, Some(&wrong))
    }

    fn with_value(&self, path: &str, value: Option<&Value>) -> Value {
        let mut properties = if self.is_other_shape(path) {
            json!({})
        } else {
            self.minimal()
        };
        let parts = parts(path);
        let mut place = &mut properties;
        for depth in 0..parts.len() {
            let here = join(&parts[..=depth]);
            let is_last = depth + 1 == parts.len();
            let sample = match value {
                Some(value) if is_last => value.clone(),
                _ => self.sample(&here, &is_needed),
            };
            let is_there = match (parts[depth].as_str(), &*place) {
                ("[]", Value::Array(items)) => !items.is_empty(),
                ("*", Value::Object(fields)) => !fields.is_empty(),
                (name, Value::Object(fields)) => fields.contains_key(name),
                _ => false,
            };
            place = match parts[depth].as_str() {
                "[]" => {
                    if !place.is_array() || !is_there {
                        *place = json!([sample]);
                    } else if is_last && value.is_some() {
                        place[0] = sample;
                    }
                    &mut place[0]
                }
                name => {
                    let name = if name == "*" { "key" } else { name };
                    if !place.is_object() {
                        *place = json!({});
                    }
                    if !is_there || is_last && value.is_some() {
                        place[name] = sample;
                    }
                    &mut place[name]
                }
            };
        }
        self.choose_volume(path, &mut properties);
        properties
    }

    /// Some parameters are only for volumes of one type.
    fn choose_volume(&self, path: &str, properties: &mut Value) {
        let has_types = self
            .parameters
            .iter()
            .any(|known| known.path == "volumes[].type");
        let wanted = match path.strip_prefix("volumes[].") {
            Some("claimName") => "pvc",
            Some("secretName") => "secret",
            Some(rest)
                if rest == "cmName" || rest == "defaultMode" || rest.starts_with("items") =>
            {
                "configMap"
            }
            _ => return,
        };
        if has_types {
            properties["volumes"][0]["type"] = json!(wanted);
        }
    }

    /// Whether a parameter belongs to a shape for several containers.
    fn is_other_shape(&self, path: &str) -> bool {
        let has_shapes = self
            .parameters
            .iter()
            .any(|known| known.path == "containerName");
        has_shapes && (path.starts_with("containers") || path.starts_with("probes"))
    }

    fn find(&self, path: &str) -> &Parameter {
        let found = self.parameters.iter().find(|known| known.path == path);
        found.unwrap_or_else(|| panic!("no parameter {path}"))
    }

    /// The fields below a path that are wanted.
    fn object(&self, path: &str, is_wanted: &dyn Fn(&Parameter) -> bool) -> Value {
        let depth = if path.is_empty() {
            0
        } else {
            parts(path).len()
        };
        let mut fields = Map::new();
        for parameter in self.parameters {
            let own = parts(&parameter.path);
            let is_below = own.len() == depth + 1 && (depth == 0 || join(&own[..depth]) == path);
            let name = &own[own.len() - 1];
            if is_below && name != "[]" && is_wanted(parameter) && !fields.contains_key(name) {
                let name = if name == "*" { "key" } else { name };
                fields.insert(name.to_owned(), self.sample(&parameter.path, is_wanted));
            }
        }
        Value::Object(fields)
    }

    fn sample(&self, path: &str, is_wanted: &dyn Fn(&Parameter) -> bool) -> Value {
        let Some(parameter) = self.parameters.iter().find(|known| known.path == path) else {
            // An element, or any field.
            return self.object(path, is_wanted);
        };
        if let Some(value) = special(self.definition, path) {
            return value;
        }
        self.of_type(&parameter.type_text, parameter, is_wanted)
    }

    fn of_type(
        &self,
        text: &str,
        parameter: &Parameter,
        is_wanted: &dyn Fn(&Parameter) -> bool,
    ) -> Value {
        let path = &parameter.path;
        if let Some(inner) = text
            .split(" | ")
            .find_map(|one| one.strip_prefix("list of "))
        {
            return match inner {
                "object" => json!([self.object(&format!("{path}[]"), is_wanted)]),
                inner => json!([self.of_type(inner, parameter, is_wanted)]),
            };
        }
        if let Some(inner) = text.strip_prefix("map of ") {
            return match inner {
                "object" => json!({"key": self.object(&format!("{path}.*"), is_wanted)}),
                inner => json!({"key": self.of_type(inner, parameter, is_wanted)}),
            };
        }
        let last = path.rsplit(['.', ']']).next().unwrap_or_default();
        match text {
            "object" => self.object(path, is_wanted),
            "list" => json!([]),
            "bool" => json!(parameter.default != "true"),
            _ if last == "containerName" => json!(self.component),
            _ if text.starts_with("int") || text == "number" => json!(3),
            _ if text.starts_with("=~") || text.contains("| =~") => json!("64Mi"),
            _ if text.starts_with('"') => {
                // The last of the values, which is seldom the default.
                let last = text.rsplit(" | ").next().unwrap_or_default();
                json!(last.trim_matches('"'))
            }
            _ => json!("text"),
        }
    }
}

fn join(parts: &[String]) -> String {
    parts.join(".").replace(".[]", "[]")
}
