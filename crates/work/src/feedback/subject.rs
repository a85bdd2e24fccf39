//! The object that questions are about, in the versions in which they are asked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Query;

/// An object that questions are about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The object in the version of its manifest.
    pub object: &'a Value,
    /// The object in other versions, where paths may ask for one. Without them a path may only name
    /// the version of the manifest.
    pub versions: Option<&'a Versions>,
}

/// An object as other versions of its kind show it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Versions {
    /// The latest version that the cluster serves: paths without a version are resolved in it.
    pub latest: Option<String>,
    /// The object in each version that was asked for, or why it could not be read.
    pub objects: BTreeMap<String, Result<Value, String>>,
}

/// The version of an object.
fn version_of(object: &Value) -> &str {
    let found = object["apiVersion"].as_str().unwrap_or_default();
    found.rsplit('/').next().unwrap_or_default()
}

/// The versions in which an object has to be read to answer questions, besides its own.
pub fn versions_asked_for(
    queries: &[Query],
    object: &Value,
    latest: Option<&str>,
) -> BTreeSet<String> {
    let own = version_of(object);
    let asked = queries.iter().filter_map(|query| match query {
        Query::Path { version, .. } => {
            let version = version.as_deref().filter(|version| !version.is_empty());
            version.or(latest)
        }
        _ => None,
    });
    asked
        .filter(|version| *version != own)
        .map(str::to_owned)
        .collect()
}

impl<'a> Subject<'a> {
    /// The object in the version that a path names.
    pub(super) fn in_version(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<&'a Value, String> {
        let own = version_of(self.object);
        let version = version.filter(|version| !version.is_empty());
        let Some(versions) = self.versions else {
            return match version {
                Some(wanted) if wanted != own => Err(format!(
                    "version set in the path {name} is not matched for the related resource"
                )),
                _ => Ok(self.object),
            };
        };
        let wanted = version.or(versions.latest.as_deref()).unwrap_or(own);
        if wanted == own {
            return Ok(self.object);
        }
        match versions.objects.get(wanted) {
            Some(Ok(object)) => Ok(object),
            Some(Err(error)) => Err(format!(
                "cannot read the object in version {wanted} for the path {name}: {error}"
            )),
            None => Err(format!(
                "version {wanted} set in the path {name} is not served"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_resolved_in_the_version_that_it_names_or_in_the_latest() {
        let object = json!({"apiVersion": "example.com/v1alpha1", "at": "v1alpha1"});
        let latest = json!({"apiVersion": "example.com/v1", "at": "v1"});
        let versions = Versions {
            latest: Some("v1".to_owned()),
            objects: BTreeMap::from([
                ("v1".to_owned(), Ok(latest)),
                ("v2".to_owned(), Err("gone".to_owned())),
            ]),
        };
        let check = |versions: Option<&Versions>, version, expected: Result<&str, &str>| {
            let subject = Subject {
                object: &object,
                versions,
            };
            let found = subject.in_version("x", version);
            let found = found.map(|object| object["at"].as_str().unwrap());
            assert_eq!(found, expected.map_err(str::to_owned), "{version:?}");
        };
        let served = Some(&versions);
        check(served, None, Ok("v1"));
        check(served, Some("v1"), Ok("v1"));
        check(served, Some("v1alpha1"), Ok("v1alpha1"));
        check(
            served,
            Some("v2"),
            Err("cannot read the object in version v2 for the path x: gone"),
        );
        check(
            served,
            Some("v9"),
            Err("version v9 set in the path x is not served"),
        );
        check(None, None, Ok("v1alpha1"));
        check(
            None,
            Some("v1"),
            Err("version set in the path x is not matched for the related resource"),
        );
    }

    #[test]
    fn only_other_versions_have_to_be_read() {
        let object = json!({"apiVersion": "example.com/v1"});
        let path = |version: Option<&str>| Query::Path {
            name: "x".to_owned(),
            version: version.map(str::to_owned),
            path: ".a".to_owned(),
        };
        let check = |version: Option<&str>, latest: &str, expected: &[&str]| {
            let found = versions_asked_for(&[path(version)], &object, Some(latest));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        };
        check(None, "v1", &[]);
        check(None, "v2", &["v2"]);
        check(Some("v1"), "v2", &[]);
        check(Some("v1beta1"), "v2", &["v1beta1"]);
    }
}
