//! `Chart.lock`: the versions that were chosen for the dependencies of a chart.

use std::fmt::Write as _;

use bellwether_json::yaml::first_from_yaml;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::error::{Error, Result, yaml_text};
use crate::metadata::{Dependency, Metadata};

/// The content of `Chart.lock`, or of `requirements.lock` of charts of version 1.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// The dependencies with the versions that were chosen.
    pub dependencies: Vec<Dependency>,
    /// What the dependencies of `Chart.yaml` and these hashed to when the file was written: `sha256:…`.
    pub digest: String,
    /// When the file was written.
    pub generated: String,
}

impl Lock {
    pub(crate) fn read(file: &str, text: &str) -> Result<Self> {
        let value = first_from_yaml(text)
            .map_err(|error| Error::chart(format!("cannot load {file}: {}", yaml_text(&error))))?;
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(value)
            .map_err(|error| Error::chart(format!("cannot load {file}: {error}")))
    }

    /// True if the dependencies of the chart are those that the file was written for. Otherwise `helm
    /// dependency build` refuses it.
    pub fn is_in_sync(&self, metadata: &Metadata) -> bool {
        let both = (&metadata.dependencies, &self.dependencies);
        let Ok(json) = serde_json::to_string(&both) else {
            return false;
        };
        self.digest == format!("sha256:{}", hexadecimal(&escaped(&json)))
    }
}

/// JSON as Go writes it: characters that mean something in HTML are escaped.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

fn hexadecimal(text: &str) -> String {
    let mut digits = String::new();
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest is that of `helm dependency update` of Helm 3.22.
    #[test]
    fn a_lock_that_helm_wrote_is_in_sync() {
        let mut metadata = Metadata::default();
        let chart = "dependencies:\n- name: kid\n  version: '>=0.1.0'\n  repository: file:///tmp/c1/charts/kid\n  \
                     tags: [a]\n  import-values: [x]\n";
        metadata.read("Chart.yaml", chart).unwrap();
        let text = "dependencies:\n- name: kid\n  repository: file:///tmp/c1/charts/kid\n  version: 0.1.0\n\
                    digest: sha256:f21d7ba19da09eed826b30cb83a6d5c39a1de1d0ae5fae3da66f175f1c884672\n\
                    generated: \"2026-11-17T21:29:07.409795594Z\"\n";
        let lock = Lock::read("Chart.lock", text).unwrap();
        assert_eq!(lock.dependencies[0].version, "0.1.0");
        assert!(lock.is_in_sync(&metadata));
        metadata.dependencies[0].version = ">=0.2.0".to_owned();
        assert!(!lock.is_in_sync(&metadata));
    }
}
