//! What becomes of an object that is no longer wanted.

use serde_json::Value;

use crate::ownership::{Ownership, group_of, references, references_patch};

/// A kind whose objects own others as ours do: what one of them owns too is not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerKind<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
}

/// What becomes of an object that is no longer wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is gone, or was never ours: the record forgets it.
    Forget,
    /// Another owner has it too: only our reference is taken away, by this merge patch.
    Release(Value),
    /// It is being deleted; it waits for these finalizers.
    Wait(Vec<String>),
    /// It is deleted, if it still has this UID.
    Delete {
        /// The UID.
        uid: String,
    },
}

/// Decides what becomes of an object that is no longer wanted.
///
/// Only what is ours is deleted. Owners of other kinds do not protect an object, those of the kinds of
/// `rivals` do. An object that took the place of the one that was applied is left alone.
pub fn removal(
    recorded_uid: Option<&str>,
    live: Option<&Value>,
    ownership: &Ownership<'_>,
    rivals: &[OwnerKind<'_>],
) -> Removal {
    if let Some(patch) = live.and_then(|live| ownership.leave(live)) {
        return Removal::Release(patch);
    }
    let Some(live) = live.filter(|live| ownership.is_ours(live)) else {
        return Removal::Forget;
    };
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    if let Ownership::Reference { owner, .. } = ownership {
        let is_other = |reference: &Value| reference["uid"] != *owner.uid;
        let is_shared = references(live)
            .iter()
            .any(|reference| is_other(reference) && is_among(rivals, reference));
        if is_shared {
            let mut others = references(live).to_vec();
            others.retain(is_other);
            return Removal::Release(references_patch(live, others));
        }
    }
    if recorded_uid.is_some_and(|recorded| !recorded.is_empty() && recorded != uid) {
        return Removal::Forget;
    }
    if live["metadata"]["deletionTimestamp"].is_string() {
        return Removal::Wait(finalizers(live));
    }
    Removal::Delete {
        uid: uid.to_owned(),
    }
}

fn is_among(kinds: &[OwnerKind<'_>], reference: &Value) -> bool {
    let group = group_of(reference["apiVersion"].as_str().unwrap_or_default());
    kinds
        .iter()
        .any(|known| reference["kind"] == *known.kind && group == known.group)
}

/// Returns the finalizers of an object.
pub fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let names = finalizers.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::ownership::Owner;

    const RIVALS: [OwnerKind<'_>; 2] = [
        OwnerKind {
            group: "work.example",
            kind: "AppliedManifestWork",
        },
        OwnerKind {
            group: "multi.example",
            kind: "AppliedWork",
        },
    ];

    fn owner(uid: &str) -> Owner {
        Owner {
            api_version: "work.example/v1".into(),
            kind: "AppliedManifestWork".into(),
            name: format!("hub-{uid}"),
            uid: uid.into(),
        }
    }

    fn object(owners: &[Value]) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": owners}})
    }

    #[track_caller]
    fn check(recorded: Option<&str>, live: Option<&Value>, expected: Removal) {
        let mine = owner("1");
        let ownership = Ownership::Reference {
            owner: &mine,
            belongs: true,
        };
        assert_eq!(removal(recorded, live, &ownership, &RIVALS), expected);
    }

    #[test]
    fn only_what_an_owner_has_alone_is_deleted() {
        let mine = owner("1");
        let ours = object(&[mine.reference()]);
        let delete = Removal::Delete { uid: "u".into() };
        check(Some("u"), None, Removal::Forget);
        check(Some("u"), Some(&object(&[])), Removal::Forget);
        check(Some("u"), Some(&ours), delete.clone());
        check(None, Some(&ours), delete.clone());
        check(Some("other"), Some(&ours), Removal::Forget);
        let foreign =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "9"});
        check(
            Some("u"),
            Some(&object(&[mine.reference(), foreign])),
            delete,
        );
        let small = json!({"apiVersion": "multi.example/v1alpha1", "kind": "AppliedWork", "name": "d", "uid": "9"});
        for other in [owner("2").reference(), small] {
            let shared = object(&[mine.reference(), other.clone()]);
            let released = references_patch(&shared, vec![other]);
            check(Some("u"), Some(&shared), Removal::Release(released));
        }
        let mut leaving = ours.clone();
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        leaving["metadata"]["finalizers"] = json!(["a/b"]);
        check(Some("u"), Some(&leaving), Removal::Wait(vec!["a/b".into()]));
    }

    #[test]
    fn labels_and_uids_protect_what_is_not_ours() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let labelled = Ownership::Labels {
            labels: &labels,
            adopt: false,
        };
        let ours = json!({"metadata": {"uid": "u", "labels": {"app": "web"}}});
        let theirs = json!({"metadata": {"uid": "u", "labels": {"app": "x"}}});
        let delete = Removal::Delete { uid: "u".into() };
        assert_eq!(removal(None, Some(&ours), &labelled, &[]), delete);
        assert_eq!(
            removal(None, Some(&theirs), &labelled, &[]),
            Removal::Forget
        );
        let any = Ownership::None;
        assert_eq!(removal(None, Some(&theirs), &any, &[]), delete);
        assert_eq!(removal(Some("v"), Some(&ours), &any, &[]), Removal::Forget);
    }
}
