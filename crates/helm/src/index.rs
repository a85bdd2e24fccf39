//! The index of a chart repository, `index.yaml`.

use std::collections::BTreeMap;

use bellwether_go::semver::{Constraints, Version};
use bellwether_json::yaml::first_from_yaml;
use serde::Deserialize;

use crate::error::{Error, Result, yaml_text};

/// The charts of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Index {
    /// Versions by the name of the chart.
    pub entries: BTreeMap<String, Vec<Entry>>,
}

/// One version of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// The name of the chart.
    pub name: String,
    /// The version of the chart.
    pub version: String,
    /// Where the archive is; relative addresses are relative to the index.
    pub urls: Vec<String>,
    /// The SHA-256 of the archive, as hexadecimal digits.
    pub digest: String,
    /// True if nobody should use it any more.
    pub deprecated: bool,
}

impl Index {
    /// Reads the text of an index.
    pub fn read(text: &str) -> Result<Self> {
        let value = first_from_yaml(text).map_err(|error| {
            Error::chart(format!("cannot read index.yaml: {}", yaml_text(&error)))
        })?;
        serde_json::from_value(value)
            .map_err(|error| Error::chart(format!("cannot read index.yaml: {error}")))
    }

    /// The newest version of a chart in a range; an empty range means any release.
    pub fn find(&self, name: &str, range: &str) -> Result<&Entry> {
        let Some(entries) = self.entries.get(name) else {
            return Err(Error::chart(format!(
                "the repository has no chart {name:?}"
            )));
        };
        let wanted = if range.is_empty() { "*" } else { range };
        let Ok(parsed) = Constraints::parse(wanted) else {
            return Err(Error::values(format!(
                "{range:?} is not a range of versions"
            )));
        };
        let newest = entries
            .iter()
            .filter_map(|entry| Some((Version::parse(&entry.version).ok()?, entry)))
            .filter(|(version, entry)| entry.version == range || parsed.check(version))
            .max_by(|(first, _), (second, _)| first.compare(second));
        match newest {
            Some((_, entry)) => Ok(entry),
            None => Err(Error::chart(format!(
                "the repository has no version of {name} that is {wanted}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_in_a_range_is_found() {
        let text = "entries:\n  web:\n  - {name: web, version: 1.2.0, urls: [a.tgz]}\n  - {name: web, \
                    version: 1.10.0}\n  - {name: web, version: 2.0.0-rc.1}\n";
        let index = Index::read(text).unwrap();
        assert_eq!(index.find("web", "").unwrap().version, "1.10.0");
        assert_eq!(index.find("web", "~1.2").unwrap().urls, ["a.tgz"]);
        assert_eq!(
            index.find("web", "2.0.0-rc.1").unwrap().version,
            "2.0.0-rc.1"
        );
        assert!(index.find("web", ">3").is_err() && index.find("none", "").is_err());
    }
}
