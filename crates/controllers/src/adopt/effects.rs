//! What our controllers would write, and what of it stands in the way.

use bellwether_api::oam::ManagedResource;
use bellwether_runtime::Effect;

use super::Found;

/// Returns why a write of ours should not happen to a hub that is taken over, if there is a reason: it would change what was delivered,
/// or have it delivered again.
pub fn obstacle_of(found: &Found, path: &str, effect: &Effect) -> Option<String> {
    let is_kind = |plural: &str| path.split('/').any(|part| part == plural);
    match effect {
        Effect::Refused(_) => None,
        Effect::Create if is_kind("applicationrevisions") => Some(format!(
            "{path} would be a new revision: its Application would be delivered again"
        )),
        // Works are what agents apply.
        _ if is_kind("manifestworks") || is_kind("works") => changes_spec(effect)
            .then(|| format!("{path} would change, and with it objects on a member")),
        _ => {
            let trackers = found.trackers.iter();
            let mut resources = trackers.flat_map(|tracker| &tracker.spec.managed_resources);
            let is_delivered = resources.any(|resource| is_at(path, resource));
            is_delivered.then(|| format!("{path} was delivered, and would change"))
        }
    }
}

fn changes_spec(effect: &Effect) -> bool {
    match effect {
        Effect::Create | Effect::Delete => true,
        Effect::Change(fields) => fields.iter().any(|field| field.starts_with(".spec")),
        Effect::Refused(_) => false,
    }
}

/// True if a path is that of an object which a tracker has.
fn is_at(path: &str, resource: &ManagedResource) -> bool {
    let path = path.strip_suffix("/status").unwrap_or(path);
    let mut parts = path.rsplit('/');
    let (name, plural) = (parts.next(), parts.next().unwrap_or_default());
    let rest: Vec<&str> = parts.collect();
    let namespace = match rest.as_slice() {
        [namespace, "namespaces", ..] => *namespace,
        _ => "",
    };
    // A plural begins as its kind does, except for a last y.
    let kind = resource.kind.to_lowercase();
    name == Some(resource.name.as_str())
        && namespace == resource.namespace
        && plural.starts_with(kind.trim_end_matches('y'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, effect: &Effect, expected: Option<&str>) {
        let tracker = json!({
            "apiVersion": "core.oam.dev/v1beta1", "kind": "ResourceTracker", "metadata": {"name": "shop"},
            "spec": {"type": "versioned", "managedResources": [
                {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "name": "web", "namespace": "a"},
                {"apiVersion": "v1", "kind": "Namespace", "name": "b"},
            ]},
        });
        let found = Found {
            trackers: vec![serde_json::from_value(tracker).unwrap()],
            ..Found::default()
        };
        let obstacle = obstacle_of(&found, path, effect);
        match expected {
            Some(text) => assert!(
                obstacle.as_ref().is_some_and(|it| it.contains(text)),
                "{obstacle:?}"
            ),
            None => assert_eq!(obstacle, None, "{path}"),
        }
    }

    #[test]
    fn what_was_delivered_is_not_to_change() {
        let change = |field: &str| Effect::Change(vec![field.to_owned()]);
        let work = "/apis/work.open-cluster-management.io/v1/namespaces/edge1/manifestworks/shop";
        check(work, &change(".status.conditions"), None);
        check(work, &change(".spec.workload"), Some("objects on a member"));
        check(work, &Effect::Delete, Some("objects on a member"));
        let policy = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";
        check(
            &format!("{policy}/web"),
            &change(".metadata.labels"),
            Some("was delivered"),
        );
        check(
            &format!("{policy}/web"),
            &Effect::Refused("no".to_owned()),
            None,
        );
        check(&format!("{policy}/other"), &change(".spec"), None);
        check(
            "/api/v1/namespaces/b",
            &Effect::Delete,
            Some("was delivered"),
        );
        check("/api/v1/namespaces/a/configmaps/web", &Effect::Create, None);
        let revision = "/apis/core.oam.dev/v1beta1/namespaces/a/applicationrevisions/shop-v2";
        check(revision, &Effect::Create, Some("delivered again"));
        check(&format!("{revision}/status"), &change(".status"), None);
    }
}
