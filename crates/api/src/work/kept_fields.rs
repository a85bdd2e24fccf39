//! Fields of objects of a work that keep the values that others gave them: the annotation `work.bellwether.dev/kept-fields`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::names::annotation;

/// When fields keep the values that others gave them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Affect {
    /// Always.
    #[default]
    #[serde(alias = "")]
    Always,
    /// When a new version of the object is applied.
    OnUpdate,
    /// Between two versions of the object.
    OnStateKeep,
}

/// Fields of one object that keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRetention {
    /// JSONPaths of the fields; `*` is the whole object.
    pub paths: Vec<String>,
    /// When they keep their values.
    #[serde(default)]
    pub affect: Affect,
}

/// Fields that keep their values, by the object, such as `deployments.apps shop/web`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptFields(pub BTreeMap<String, FieldRetention>);

impl KeptFields {
    /// Reads the annotation of a work; nothing is kept where there is none. An error says what is wrong with it.
    pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Result<Self, String> {
        let key = annotation::KEPT_FIELDS;
        let Some(text) = annotations.and_then(|all| all.get(key)) else {
            return Ok(Self::default());
        };
        serde_json::from_str(text).map_err(|error| format!("annotation {key} of the work: {error}"))
    }

    /// The text of the annotation; nothing if no field is kept.
    pub fn text(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Result<KeptFields, String> {
        let annotations = BTreeMap::from([(annotation::KEPT_FIELDS.to_owned(), text.to_owned())]);
        KeptFields::read(Some(&annotations))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let kept = FieldRetention {
            paths: vec!["spec.replicas".to_owned()],
            affect: Affect::OnUpdate,
        };
        let fields = KeptFields(BTreeMap::from([(
            "deployments.apps n/web".to_owned(),
            kept,
        )]));
        let text = fields.text().unwrap();
        let expected =
            r#"{"deployments.apps n/web":{"paths":["spec.replicas"],"affect":"onUpdate"}}"#;
        assert_eq!(text, expected);
        assert_eq!(read(&text), Ok(fields));
        assert_eq!(KeptFields::read(None), Ok(KeptFields::default()));
        assert_eq!(KeptFields::default().text(), None);
    }

    #[test]
    fn a_wrong_annotation_is_named() {
        for (text, cause) in [
            ("nothing", "expected ident"),
            (r#"{"a b": {"paths": ["x"], "affect": "never"}}"#, "`never`"),
            (r#"{"a b": {"path": ["x"]}}"#, "`path`"),
        ] {
            let error = read(text).unwrap_err();
            let start = "annotation work.bellwether.dev/kept-fields of the work: ";
            assert!(error.starts_with(start) && error.contains(cause), "{error}");
        }
    }
}
