//! By what an object is known to be ours: a reference to an owner, labels, or nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::manifest::Manifest;
use crate::metadata;
use crate::plan::ApplyError;

/// An object on the cluster that owns others, such as the record of a work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
}

impl Owner {
    /// Returns the reference that an object has to this owner.
    pub fn reference(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid})
    }

    /// Returns true if a reference is to an object of this name, kind and group, whatever its UID.
    fn is_named_by(&self, reference: &Value) -> bool {
        reference["name"] == *self.name
            && reference["kind"] == *self.kind
            && group_of(reference["apiVersion"].as_str().unwrap_or_default())
                == group_of(&self.api_version)
    }

    /// Returns true if an object belongs to exactly this owner.
    pub fn owns(&self, object: &Value) -> bool {
        references(object)
            .iter()
            .any(|reference| reference["uid"] == *self.uid)
    }
}

/// Returns the group of a group and version.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the owners of an object.
pub fn references(object: &Value) -> &[Value] {
    let list = object.pointer("/metadata/ownerReferences");
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// By what an object is known to be ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership<'a> {
    /// It refers to an owner, among others.
    Reference {
        /// The owner.
        owner: &'a Owner,
        /// Whether it is to refer to it; if not, the reference is taken away, and the object stays
        /// when its owner goes.
        belongs: bool,
    },
    /// It has labels. An object that has other values in any of them belongs to somebody else.
    Labels {
        /// The labels.
        labels: &'a BTreeMap<String, String>,
        /// Whether an object that has none of them is taken over.
        adopt: bool,
    },
    /// It has the labels of one of several owners, all of which are listed in an annotation. Only the
    /// one whose labels it has writes it; when that one lets go of it, the next on the list has it.
    Shared {
        /// Our labels.
        labels: &'a BTreeMap<String, String>,
        /// Whether an object that has none of them is taken over.
        adopt: bool,
        /// The list.
        list: &'a SharedList<'a>,
        /// Whether we are to be on the list. If not, an object that belongs to somebody else is not ours.
        joins: bool,
    },
    /// Nothing: any object of that name is ours.
    None,
}

/// A list of owners in an annotation, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedList<'a> {
    /// The annotation.
    pub annotation: &'a str,
    /// What we are called there.
    pub own: String,
    /// The labels of an owner, by what it is called there: its namespace and name.
    pub label_keys: [&'a str; 2],
}

impl SharedList<'_> {
    /// Whether several owners may have an object.
    fn is_on(&self, object: &Value) -> bool {
        object["metadata"]["annotations"][self.annotation].is_string()
    }

    fn entries<'o>(&self, object: &'o Value) -> impl Iterator<Item = &'o str> + use<'o> {
        let list = object["metadata"]["annotations"][self.annotation].as_str();
        let entries = list.unwrap_or_default().split(',');
        entries.filter(|entry| !entry.is_empty())
    }

    fn has_us(&self, object: &Value) -> bool {
        self.entries(object).any(|entry| entry == self.own)
    }

    /// The list of an object with us on it.
    fn with_us(&self, object: &Value) -> String {
        let mut all: Vec<&str> = self.entries(object).collect();
        if !all.contains(&self.own.as_str()) {
            all.push(&self.own);
        }
        all.join(",")
    }

    /// The merge patch that takes us from an object which others have too; nothing if nobody else has it.
    fn leave(&self, live: &Value, is_ours: bool) -> Option<Value> {
        let others: Vec<&str> = self.entries(live).filter(|it| *it != self.own).collect();
        let (namespace, name) = others.first()?.split_once('/')?;
        if !is_ours && !self.has_us(live) {
            return None;
        }
        let list = Map::from_iter([(self.annotation.to_owned(), others.join(",").into())]);
        let mut patch = metadata_patch(live, "annotations", list.into());
        if is_ours {
            let [of_namespace, of_name] = self.label_keys;
            patch["metadata"]["labels"] = json!({of_namespace: namespace, of_name: name});
        }
        Some(patch)
    }
}

/// How we get on the list of those who share an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Join {
    /// We are on it.
    Listed,
    /// By this patch.
    Patch(Value),
}

impl Ownership<'_> {
    /// The labels that we are known by, and whether an object without them is taken over.
    fn labels(&self) -> Option<(&BTreeMap<String, String>, bool)> {
        match self {
            Self::Labels { labels, adopt } | Self::Shared { labels, adopt, .. } => {
                Some((labels, *adopt))
            }
            Self::Reference { .. } | Self::None => None,
        }
    }

    /// Whether a live object belongs to somebody else who shares it.
    fn is_shared_by_other(&self, live: &Value) -> bool {
        match self {
            Self::Shared { list, joins, .. } => {
                *joins && list.is_on(live) && !self.is_ours(live) && self.is_labelled(live)
            }
            _ => false,
        }
    }

    /// Whether an object has any of the labels by which owners are known.
    fn is_labelled(&self, live: &Value) -> bool {
        let labels = self.labels().map(|(labels, _)| labels);
        let mut keys = labels.into_iter().flat_map(BTreeMap::keys);
        keys.any(|key| live["metadata"]["labels"][key].is_string())
    }

    /// Returns how we get on the list of an object that belongs to somebody else, if it is such an object: nobody but
    /// its owner writes more.
    pub(crate) fn join(&self, live: &Value) -> Option<Join> {
        let Self::Shared { list, .. } = self else {
            return None;
        };
        if !self.is_shared_by_other(live) {
            return None;
        }
        if list.has_us(live) {
            return Some(Join::Listed);
        }
        let entries = Map::from_iter([(list.annotation.to_owned(), list.with_us(live).into())]);
        let patch = metadata_patch(live, "annotations", entries.into());
        Some(Join::Patch(patch))
    }

    /// Marks an object that is about to be created. References of a manifest to other owners make no
    /// sense where it comes to, if ours are references too.
    pub(crate) fn claim(&self, object: &mut Value) {
        if let Self::Reference { .. } = self {
            metadata::set_owners(object, Vec::new());
        }
        self.mark(object);
        self.list(object, &Value::Null);
    }

    /// Marks an object, keeping marks of others.
    pub(crate) fn mark(&self, object: &mut Value) {
        if let Self::Reference { owner, belongs } = self {
            let wanted = wanted_references(object, owner, *belongs);
            metadata::set_owners(object, wanted);
        }
        self.label(object);
    }

    /// Adds us to the list that a live object has, if it is shared.
    pub(crate) fn list(&self, object: &mut Value, live: &Value) {
        let Self::Shared {
            list, joins: true, ..
        } = self
        else {
            return;
        };
        let annotations = &mut object["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[list.annotation] = list.with_us(live).into();
    }

    /// Adds the labels to an object, if it is known by labels.
    pub(crate) fn label(&self, object: &mut Value) {
        let Some((labels, _)) = self.labels() else {
            return;
        };
        let known = &mut object["metadata"]["labels"];
        if !known.is_object() {
            *known = json!({});
        }
        for (key, value) in labels {
            known[key] = value.as_str().into();
        }
    }

    /// Returns true if a live object is ours.
    pub fn is_ours(&self, live: &Value) -> bool {
        match self {
            Self::Reference { owner, .. } => owner.owns(live),
            Self::Labels { labels, .. } | Self::Shared { labels, .. } => labels
                .iter()
                .all(|(key, value)| live["metadata"]["labels"][key] == *value),
            Self::None => true,
        }
    }

    /// Returns an error if a live object must not be written, because it is not ours.
    pub(crate) fn check(&self, manifest: &Manifest, live: &Value) -> Result<(), ApplyError> {
        let Some((labels, adopt)) = self.labels() else {
            return Ok(());
        };
        if self.is_ours(live) || self.is_shared_by_other(live) {
            return Ok(());
        }
        let values: Vec<&str> = labels
            .keys()
            .filter_map(|key| live["metadata"]["labels"][key].as_str())
            .collect();
        let object = manifest.described();
        match values.as_slice() {
            [] if adopt => Ok(()),
            [] => Err(ApplyError::Unowned(object)),
            values => Err(ApplyError::OwnedByOther {
                object,
                owner: values.join("/"),
            }),
        }
    }

    /// Returns the merge patch that marks a live object; nothing if it is marked.
    pub fn patch(&self, live: &Value) -> Option<Value> {
        match self {
            Self::Reference { owner, belongs } => {
                let wanted = wanted_references(live, owner, *belongs);
                (wanted != references(live)).then(|| references_patch(live, wanted))
            }
            Self::Labels { labels, .. } | Self::Shared { labels, .. } => {
                let missing: Map<String, Value> = labels
                    .iter()
                    .filter(|(key, value)| live["metadata"]["labels"][*key] != **value)
                    .map(|(key, value)| (key.clone(), value.as_str().into()))
                    .collect();
                (!missing.is_empty()).then(|| metadata_patch(live, "labels", missing.into()))
            }
            Self::None => None,
        }
    }

    /// Returns the merge patch that takes our marks from a live object, so that it stays when its owner
    /// goes; nothing if it has none.
    pub fn release(&self, live: &Value) -> Option<Value> {
        match self {
            Self::Shared { .. } if self.leave(live).is_some() => self.leave(live),
            _ if !self.is_ours(live) => None,
            Self::Reference { owner, .. } => Ownership::Reference {
                owner,
                belongs: false,
            }
            .patch(live),
            Self::Labels { labels, .. } | Self::Shared { labels, .. } => {
                let none: Map<String, Value> = labels
                    .keys()
                    .map(|key| (key.clone(), Value::Null))
                    .collect();
                Some(metadata_patch(live, "labels", none.into()))
            }
            Self::None => None,
        }
    }

    /// Returns the merge patch that leaves a live object to those who have it too; nothing if nobody has.
    pub(crate) fn leave(&self, live: &Value) -> Option<Value> {
        match self {
            Self::Shared { list, .. } => list.leave(live, self.is_ours(live)),
            _ => None,
        }
    }

    /// Returns the merge patch that marks an object that is no longer written, after it was decided
    /// otherwise whether it goes with its owner; nothing if it is marked. An object that none of these
    /// field managers ever wrote was never ours, and stays so.
    pub fn realign(&self, live: &Value, manager_prefix: &str) -> Option<Value> {
        let belongs = !matches!(self, Self::Reference { belongs: false, .. });
        let managers = live["metadata"]["managedFields"].as_array();
        let is_ours = |entry: &Value| {
            let manager = entry["manager"].as_str().unwrap_or_default();
            manager.starts_with(manager_prefix)
        };
        let was_written = managers.is_some_and(|managers| managers.iter().any(is_ours));
        self.patch(live).filter(|_| !belongs || was_written)
    }
}

/// The owners that an object has to have: those that it has, with this one or without.
fn wanted_references(live: &Value, owner: &Owner, belongs: bool) -> Vec<Value> {
    let mut wanted = references(live).to_vec();
    if !belongs {
        wanted.retain(|reference| !owner.is_named_by(reference));
        return wanted;
    }
    match wanted
        .iter_mut()
        .find(|reference| owner.is_named_by(reference))
    {
        // An owner that was removed and made again has another UID.
        Some(reference) => reference["uid"] = owner.uid.clone().into(),
        None => wanted.push(owner.reference()),
    }
    wanted
}

/// The merge patch that gives a live object these owners, if it is still the same.
pub(crate) fn references_patch(live: &Value, wanted: Vec<Value>) -> Value {
    metadata_patch(live, "ownerReferences", Value::Array(wanted))
}

/// The merge patch that sets a field of the metadata of a live object, if it is still the same.
fn metadata_patch(live: &Value, field: &str, value: Value) -> Value {
    let mut metadata = Map::new();
    for field in ["uid", "resourceVersion"] {
        if let Some(value) = live["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert(field.to_owned(), value);
    json!({ "metadata": metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner {
            api_version: "work.example/v1".into(),
            kind: "AppliedWork".into(),
            name: format!("hub-{uid}"),
            uid: uid.into(),
        }
    }

    fn owned_by(owner: &Owner, belongs: bool) -> Ownership<'_> {
        Ownership::Reference { owner, belongs }
    }

    fn object(owners: &[Value]) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": owners}})
    }

    #[test]
    fn owners_are_added_kept_and_taken_away() {
        let foreign =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "9"});
        let live = object(std::slice::from_ref(&foreign));
        let wanted = wanted_references(&live, &owner("1"), true);
        assert_eq!(wanted, [foreign.clone(), owner("1").reference()]);
        let owned = object(&wanted);
        assert_eq!(owned_by(&owner("1"), true).patch(&owned), None);
        let released =
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": [foreign]}});
        assert_eq!(
            owned_by(&owner("1"), false).patch(&owned),
            Some(released.clone())
        );
        assert_eq!(owned_by(&owner("1"), true).release(&owned), Some(released));
        assert_eq!(owned_by(&owner("1"), true).release(&live), None);
    }

    #[test]
    fn an_owner_that_was_made_again_takes_the_place_of_the_old_one() {
        let mut old = owner("1");
        old.uid = "0".into();
        let live = object(&[old.reference()]);
        assert_eq!(
            wanted_references(&live, &owner("1"), true),
            [owner("1").reference()]
        );
    }

    #[test]
    fn labels_say_whose_an_object_is() {
        let labels = BTreeMap::from([
            ("app/name".to_owned(), "web".to_owned()),
            ("app/namespace".to_owned(), "prod".to_owned()),
        ]);
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": "n"}});
        let manifest = Manifest::read(0, &manifest).unwrap();
        let check = |known: Value, adopt: bool, expected: &str| {
            let ownership = Ownership::Labels {
                labels: &labels,
                adopt,
            };
            let live = json!({"metadata": {"labels": known}});
            let found = ownership.check(&manifest, &live);
            let text = found.map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(text, expected, "{live}");
        };
        let ours = json!({"app/name": "web", "app/namespace": "prod", "x": "y"});
        check(ours, false, "");
        check(json!({}), true, "");
        check(Value::Null, false, "ConfigMap n/m exists, but has no owner");
        let theirs = json!({"app/name": "other", "app/namespace": "prod"});
        check(theirs, true, "ConfigMap n/m is managed by other/prod");
    }

    #[test]
    fn labels_are_added_and_taken_away() {
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let ownership = Ownership::Labels {
            labels: &labels,
            adopt: true,
        };
        let live = json!({"metadata": {"uid": "u", "labels": {"x": "y"}}});
        let patch = json!({"metadata": {"uid": "u", "labels": {"a": "b"}}});
        assert_eq!(ownership.patch(&live), Some(patch));
        assert_eq!(ownership.release(&live), None);
        let ours = json!({"metadata": {"uid": "u", "labels": {"x": "y", "a": "b"}}});
        assert_eq!(ownership.patch(&ours), None);
        let released = json!({"metadata": {"uid": "u", "labels": {"a": null}}});
        assert_eq!(ownership.release(&ours), Some(released));
    }

    fn shared_list(own: &str) -> SharedList<'static> {
        SharedList {
            annotation: "app/shared-by",
            own: own.to_owned(),
            label_keys: ["app/namespace", "app/name"],
        }
    }

    /// An object with labels of an owner in the namespace `n`, and a list.
    fn shared_object(owner: &str, list: &str) -> Value {
        json!({"metadata": {"labels": {"app/namespace": "n", "app/name": owner},
            "annotations": {"app/shared-by": list}}})
    }

    #[test]
    fn an_object_is_shared_by_those_on_its_list() {
        let labels = BTreeMap::from([
            ("app/name".to_owned(), "web".to_owned()),
            ("app/namespace".to_owned(), "n".to_owned()),
        ]);
        let list = shared_list("n/web");
        let ownership = |joins| Ownership::Shared {
            labels: &labels,
            adopt: false,
            list: &list,
            joins,
        };
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        let manifest = Manifest::read(0, &manifest).unwrap();
        let theirs = shared_object("other", "n/other");
        assert!(ownership(true).check(&manifest, &theirs).is_ok());
        assert!(ownership(false).check(&manifest, &theirs).is_err());
        let joined = json!({"metadata": {"annotations": {"app/shared-by": "n/other,n/web"}}});
        assert_eq!(ownership(true).join(&theirs), Some(Join::Patch(joined)));
        let both = shared_object("other", "n/other,n/web");
        assert_eq!(ownership(true).join(&both), Some(Join::Listed));
        let ours = shared_object("web", "n/web");
        assert_eq!(ownership(true).join(&ours), None);
        let mut unshared = shared_object("other", "");
        unshared["metadata"]["annotations"] = json!({});
        assert!(ownership(true).check(&manifest, &unshared).is_err());
    }

    #[test]
    fn who_leaves_a_shared_object_hands_it_on() {
        let labels = BTreeMap::from([
            ("app/name".to_owned(), "web".to_owned()),
            ("app/namespace".to_owned(), "n".to_owned()),
        ]);
        let list = shared_list("n/web");
        let ownership = Ownership::Shared {
            labels: &labels,
            adopt: false,
            list: &list,
            joins: false,
        };
        let check = |live: Value, expected: Option<Value>| {
            assert_eq!(ownership.leave(&live), expected, "{live}");
        };
        let handed = json!({"metadata": {"labels": {"app/namespace": "n", "app/name": "other"},
            "annotations": {"app/shared-by": "n/other"}}});
        check(shared_object("web", "n/web,n/other"), Some(handed));
        let left = json!({"metadata": {"annotations": {"app/shared-by": "n/other"}}});
        check(shared_object("other", "n/other,n/web"), Some(left));
        check(shared_object("other", "n/other"), None);
        check(shared_object("web", "n/web"), None);
    }

    #[test]
    fn an_object_that_was_never_written_is_not_claimed_later() {
        let mine = owner("1");
        let check = |live: &Value, belongs: bool, expected: bool| {
            let found = owned_by(&mine, belongs).realign(live, "work-agent");
            assert_eq!(found.is_some(), expected, "{live} {belongs}");
        };
        let foreign = object(&[]);
        let mut ours = object(&[]);
        ours["metadata"]["managedFields"] = json!([{"manager": "work-agent-2"}]);
        check(&foreign, true, false);
        check(&ours, true, true);
        check(&object(&[mine.reference()]), false, true);
    }
}
