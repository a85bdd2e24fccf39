//! Objects of one kind and namespace that templates look up, and who asked for which.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_policy::template::Resource;
use bellwether_runtime::{Cache, CacheEntry, ObjectKey, Selection};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

use super::Unanswered;
use crate::policy_propagator::Triggers;

/// What is asked of the objects of a kind.
#[derive(Clone, Copy)]
pub(super) enum ObjectQuery<'a> {
    /// The one of that name.
    One(&'a str),
    /// Those that a selector matches.
    Some(&'a str),
}

/// How a kind is served.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) resource: Resource,
    group: String,
    plural: String,
    /// The path of its group and version.
    path: String,
}

impl Kind {
    fn path_in(&self, namespace: &str) -> String {
        if self.resource.is_namespaced && !namespace.is_empty() {
            format!("{}/namespaces/{namespace}/{}", self.path, self.plural)
        } else {
            format!("{}/{}", self.path, self.plural)
        }
    }
}

/// The kinds of the hub, as far as somebody asked for them.
#[derive(Default)]
pub(super) struct Kinds(Mutex<HashMap<(String, String), Kind>>);

impl Kinds {
    /// Returns how a kind is served; nothing if it is not. What is not served is asked for again.
    pub(super) async fn find(
        &self,
        client: &Client,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Kind>, kube::Error> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.0.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let (group, path, list) = match api_version.split_once('/') {
            Some((group, _)) => (
                group,
                format!("/apis/{api_version}"),
                client.list_api_group_resources(api_version).await,
            ),
            None => (
                "",
                format!("/api/{api_version}"),
                client.list_core_api_resources(api_version).await,
            ),
        };
        let list = match list {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            other => other?,
        };
        let mut resources = list.resources.into_iter();
        let found = resources.find(|it| it.kind == kind && !it.name.contains('/'));
        let Some(found) = found else {
            return Ok(None);
        };
        let name = match group {
            "" => found.name.clone(),
            group => format!("{}.{group}", found.name),
        };
        let served = Kind {
            resource: Resource {
                name,
                is_namespaced: found.namespaced,
            },
            group: group.to_owned(),
            plural: found.name,
            path,
        };
        self.0.lock().insert(key, served.clone());
        Ok(Some(served))
    }
}

/// An object that templates can look up.
pub(super) struct Looked {
    key: ObjectKey,
    pub(super) object: Value,
}

impl CacheEntry for Looked {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut object: Value = serde_json::from_str(text)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let metadata = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Ok(Self {
            key: ObjectKey::new(metadata("namespace"), metadata("name")),
            object,
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.object["metadata"]["resourceVersion"] == other.object["metadata"]["resourceVersion"]
    }
}

/// Which objects a policy asked for.
#[derive(Default)]
struct Interest {
    names: BTreeSet<String>,
    has_lists: bool,
}

/// Who asked for which objects.
type Interests = Arc<Mutex<HashMap<ObjectKey, Interest>>>;

/// The objects of one kind and namespace.
pub(super) struct Watch {
    pub(super) objects: Cache<Looked>,
    interests: Interests,
}

impl Watch {
    /// Begins to watch. Policies that asked for an object are resolved again when it changes.
    pub(super) fn start(
        client: &Client,
        kind: &Kind,
        namespace: &str,
        triggers: &Triggers,
    ) -> Self {
        let interests = Interests::default();
        let (known, triggers) = (Arc::clone(&interests), triggers.clone());
        let path = kind.path_in(namespace);
        let objects = Cache::follow(client.clone(), path, Selection::default(), move |change| {
            for (root, interest) in &*known.lock() {
                if interest.has_lists || interest.names.contains(&*change.key.name) {
                    triggers.renew(root.clone());
                }
            }
        });
        Self { objects, interests }
    }

    pub(super) fn asked_by(&self, root: &ObjectKey, asked: ObjectQuery<'_>) {
        let mut interests = self.interests.lock();
        let interest = interests.entry(root.clone()).or_default();
        match asked {
            ObjectQuery::One(name) => drop(interest.names.insert(name.to_owned())),
            ObjectQuery::Some(_) => interest.has_lists = true,
        }
    }

    pub(super) fn forget(&self, root: &ObjectKey) {
        self.interests.lock().remove(root);
    }

    pub(super) fn is_used(&self) -> bool {
        !self.interests.lock().is_empty()
    }
}

/// Asks whether a service account may read what a template asks for in its name.
pub(super) async fn check_rights(
    client: &Client,
    account_namespace: &str,
    account: &str,
    kind: &Kind,
    namespace: &str,
    asked: ObjectQuery<'_>,
) -> Result<(), Unanswered> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), account_namespace);
    if accounts.get_opt(account).await?.is_none() {
        return Err(Unanswered::Refused(format!(
            "the service account in hubTemplateOptions.serviceAccountName \
             ({account_namespace}/{account}) does not exist"
        )));
    }
    let user = format!("system:serviceaccount:{account_namespace}:{account}");
    let (verb, name) = match asked {
        ObjectQuery::One(name) => ("get", Some(name.to_owned())),
        ObjectQuery::Some(_) => ("list", None),
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.clone()),
            groups: Some(vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{account_namespace}"),
                "system:authenticated".to_owned(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                group: Some(kind.group.clone()),
                resource: Some(kind.plural.clone()),
                namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
                name: name.clone(),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    if answer.status.is_some_and(|status| status.allowed) {
        return Ok(());
    }
    let what = match name {
        Some(name) => format!("{} {name:?}", kind.resource.name),
        None => kind.resource.name.clone(),
    };
    Err(Unanswered::Refused(format!(
        "{what} is forbidden: User {user:?} cannot {verb} resource {:?} in API group {:?}",
        kind.plural, kind.group
    )))
}
