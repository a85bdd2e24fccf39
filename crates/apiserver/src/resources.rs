//! The resources that a cluster serves, by group, version and name.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use bellwether_kinds as kinds;

use crate::request::Verb;
use crate::resource::{Resource, Source, key_prefix};

/// All resources of a cluster: the built-in ones, shared by all, and its own custom ones.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    built_in: Arc<Index>,
    custom: Arc<Index>,
}

/// Group, version and plural name.
type FullName = (Arc<str>, Arc<str>, Arc<str>);

/// Resources of one origin.
#[derive(Debug, Default)]
struct Index {
    /// In the order in which they are announced.
    list: Vec<Arc<Resource>>,
    by_name: HashMap<FullName, Arc<Resource>>,
    /// One resource for each set of stored objects: the first that was announced.
    by_prefix: BTreeMap<Arc<str>, Arc<Resource>>,
}

impl Index {
    fn new(list: Vec<Arc<Resource>>) -> Self {
        let by_name = list
            .iter()
            .map(|found| {
                let name = (
                    found.group.clone(),
                    found.version.clone(),
                    found.plural.clone(),
                );
                (name, found.clone())
            })
            .collect();
        let mut by_prefix = BTreeMap::new();
        for found in list
            .iter()
            .filter(|found| found.verbs.contains(&Verb::Delete))
        {
            by_prefix
                .entry(found.prefix.clone())
                .or_insert_with(|| found.clone());
        }
        Self {
            list,
            by_name,
            by_prefix,
        }
    }
}

static BUILT_IN: LazyLock<Arc<Index>> = LazyLock::new(|| {
    let list = kinds::resources()
        .iter()
        .map(|kind| Arc::new(built_in(kind)))
        .collect();
    Arc::new(Index::new(list))
});

static MEASURED: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| {
    let kinds = kinds::metrics::RESOURCES.iter();
    kinds.map(|kind| Arc::new(built_in(kind))).collect()
});

/// The resources that clusters with nodes have besides.
pub(crate) fn measured() -> impl Iterator<Item = Arc<Resource>> {
    MEASURED.iter().cloned()
}

fn built_in(kind: &'static kinds::Resource) -> Resource {
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        api_version: kind.api_version().into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind().into(),
        plural: kind.plural.into(),
        singular: kind.singular().into(),
        short_names: kind.short_names.iter().map(ToString::to_string).collect(),
        categories: kind.categories.iter().map(ToString::to_string).collect(),
        namespaced: kind.namespaced,
        verbs: kind
            .verbs
            .iter()
            .filter_map(|word| Verb::from_word(word))
            .collect(),
        prefix: key_prefix(kind.storage.group, kind.plural),
        source: Source::BuiltIn(kind),
        blank: Arc::default(),
    }
}

impl Resources {
    /// The built-in resources and these.
    pub(crate) fn with_custom(custom: Vec<Arc<Resource>>) -> Self {
        Self {
            built_in: BUILT_IN.clone(),
            custom: Arc::new(Index::new(custom)),
        }
    }

    /// The resource that a path names.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let name = (Arc::from(group), Arc::from(version), Arc::from(plural));
        self.built_in
            .by_name
            .get(&name)
            .or_else(|| self.custom.by_name.get(&name))
    }

    /// The resource of a kind, as objects and owner references name it.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.iter()
            .find(|found| *found.api_version == *api_version && *found.kind == *kind)
    }

    /// All resources, built-in ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.built_in.list.iter().chain(&self.custom.list)
    }

    /// The custom ones.
    pub(crate) fn custom(&self) -> &[Arc<Resource>] {
        &self.custom.list
    }

    /// One resource for each set of stored objects.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.built_in
            .by_prefix
            .values()
            .chain(self.custom.by_prefix.values())
    }

    /// The resource whose object is stored under a key.
    pub(crate) fn of_key(&self, key: &str) -> Option<&Arc<Resource>> {
        let (second, _) = key.match_indices('/').nth(1)?;
        let prefix = &key[..=second];
        self.built_in
            .by_prefix
            .get(prefix)
            .or_else(|| self.custom.by_prefix.get(prefix))
    }

    /// Groups and their versions in the order of announcement, the preferred version first.
    pub(crate) fn groups(&self) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
        let mut groups: Vec<(Arc<str>, Vec<Arc<str>>)> = Vec::new();
        for found in self.iter() {
            let position = groups.iter().position(|(group, _)| *group == found.group);
            let versions = if let Some(position) = position {
                &mut groups[position].1
            } else {
                groups.push((found.group.clone(), Vec::new()));
                &mut groups
                    .last_mut()
                    .unwrap_or_else(|| unreachable!("just pushed"))
                    .1
            };
            if !versions.contains(&found.version) {
                versions.push(found.version.clone());
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        }
        groups
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, newer before older.
pub(crate) fn version_priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other;
    };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Ok(major) = rest[..digits].parse::<u64>() else {
        return other;
    };
    let stage = &rest[digits..];
    let (level, minor) = match stage {
        "" => (3, ""),
        _ if stage.starts_with("beta") => (2, &stage[4..]),
        _ if stage.starts_with("alpha") => (1, &stage[5..]),
        _ => return other,
    };
    match (level, minor.parse::<u64>()) {
        (3, _) => (3, major, 0, std::cmp::Reverse(String::new())),
        (level, Ok(minor)) => (level, major, minor, std::cmp::Reverse(String::new())),
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_prefers_them() {
        let mut versions = [
            "foo1",
            "v3beta1",
            "v1",
            "v12alpha1",
            "v11alpha2",
            "v10",
            "v2",
            "foo10",
            "v11beta2",
            "v10beta3",
        ];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "foo1",
                "foo10"
            ]
        );
    }

    #[test]
    fn built_in_resources_are_found_by_path_and_by_kind() {
        let resources = Resources::with_custom(Vec::new());
        assert_eq!(
            &*resources.find("apps", "v1", "deployments").unwrap().kind,
            "Deployment"
        );
        assert_eq!(
            &*resources.find_kind("v1", "ConfigMap").unwrap().plural,
            "configmaps"
        );
        assert!(resources.find("apps", "v1", "nonsense").is_none());
        assert_eq!(&*resources.groups()[0].0, "");
    }
}
