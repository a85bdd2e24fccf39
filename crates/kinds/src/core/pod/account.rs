//! The service account of a pod, and the volume with its token.

use serde_json::{Value, json};

use crate::value::{Fill, at, existing, has, items, list, object, text};

/// The account of a pod that names none.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The name of a token's volume, before the letters that make it unique.
pub const TOKEN_VOLUME: &str = "kube-api-access-";

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// An hour, and the seven seconds by which Kubernetes recognises tokens that it asked for itself.
const TOKEN_SECONDS: i64 = 3607;

/// The account that a pod runs as; none for the mirror of a pod that a node runs by itself.
pub fn account_name(pod: &Value) -> Option<&str> {
    if has(pod, &["metadata", "annotations", MIRROR]) {
        return None;
    }
    Some(match text(pod, &["spec", "serviceAccountName"]) {
        "" => DEFAULT_ACCOUNT,
        name => name,
    })
}

/// Makes a pod run as an account: with its token, unless pod or account say otherwise, and with its
/// secrets for pulling images, unless the pod has its own. `volume` is the name of the volume that
/// holds the token.
pub fn set_account(pod: &mut Value, account: &Value, volume: &str) {
    let name = text(account, &["metadata", "name"]).to_owned();
    let mounts = [at(pod, &["spec"]), account]
        .iter()
        .find_map(|asked| at(asked, &["automountServiceAccountToken"]).as_bool())
        .unwrap_or(true);
    if mounts {
        mount_token(pod, volume);
    }
    let Some(spec) = object(pod, &["spec"]) else {
        return;
    };
    spec.insert("serviceAccountName".to_owned(), name.as_str().into());
    spec.insert("serviceAccount".to_owned(), name.into());
    let secrets = list(account, &["imagePullSecrets"]);
    if !secrets.is_empty() {
        spec.fill_zero("imagePullSecrets", secrets.to_vec());
    }
}

fn mount_token(pod: &mut Value, volume: &str) {
    let own = list(pod, &["spec", "volumes"])
        .iter()
        .map(|volume| text(volume, &["name"]))
        .find(|name| name.starts_with(TOKEN_VOLUME))
        .map(str::to_owned);
    let name = own.as_deref().unwrap_or(volume);
    let mut is_used = false;
    for containers in ["initContainers", "containers"] {
        for container in items(pod, &["spec", containers]) {
            let mounts = list(container, &["volumeMounts"]);
            let has_one = |mount: &Value| text(mount, &["mountPath"]) == TOKEN_PATH;
            if mounts.iter().any(has_one) {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
            push(container, "volumeMounts", mount);
            is_used = true;
        }
    }
    if own.is_none()
        && is_used
        && let Some(spec) = pod.get_mut("spec")
    {
        push(spec, "volumes", token_volume(volume));
    }
}

fn push(value: &mut Value, field: &str, item: Value) {
    if let Some(fields) = existing(value, &[]) {
        fields.fill(field, Value::Array(Vec::new()));
        if let Some(Value::Array(items)) = fields.get_mut(field) {
            items.push(item);
        }
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(fields: Value) -> Value {
        let mut account = json!({"metadata": {"name": "bot"}});
        for (name, value) in fields.as_object().unwrap() {
            account[name] = value.clone();
        }
        account
    }

    fn volumes(pod: &Value) -> Vec<&str> {
        let volumes = list(pod, &["spec", "volumes"]).iter();
        volumes.map(|volume| text(volume, &["name"])).collect()
    }

    #[test]
    fn every_container_gets_the_token() {
        let mut pod = json!({"spec": {
            "initContainers": [{"name": "i"}],
            "containers": [
                {"name": "a"},
                {"name": "b", "volumeMounts": [{"name": "mine", "mountPath": TOKEN_PATH}]},
            ],
        }});
        set_account(&mut pod, &account(json!({})), "kube-api-access-x");
        assert_eq!(volumes(&pod), ["kube-api-access-x"]);
        let spec = &pod["spec"];
        assert_eq!(spec["serviceAccountName"], "bot");
        assert_eq!(spec["serviceAccount"], "bot");
        let mount =
            json!([{"name": "kube-api-access-x", "readOnly": true, "mountPath": TOKEN_PATH}]);
        assert_eq!(spec["initContainers"][0]["volumeMounts"], mount);
        assert_eq!(spec["containers"][0]["volumeMounts"], mount);
        let own = &spec["containers"][1]["volumeMounts"];
        assert_eq!(own.as_array().unwrap().len(), 1);
        // A copy of a pod keeps the volume that it has.
        let before = pod.clone();
        set_account(&mut pod, &account(json!({})), "kube-api-access-y");
        assert_eq!(pod, before);
    }

    #[test]
    fn the_pod_decides_before_its_account() {
        let off = json!({"automountServiceAccountToken": false});
        for (of_pod, of_account, mounted) in [
            (json!(null), json!({}), true),
            (json!(null), off.clone(), false),
            (json!(true), off, true),
            (json!(false), json!({}), false),
        ] {
            let mut pod = json!({"spec": {
                "automountServiceAccountToken": of_pod, "containers": [{"name": "a"}],
            }});
            set_account(&mut pod, &account(of_account), "kube-api-access-x");
            assert_eq!(!volumes(&pod).is_empty(), mounted, "{pod}");
        }
    }

    #[test]
    fn secrets_for_images_are_those_of_the_pod_or_the_account() {
        let has = account(json!({"imagePullSecrets": [{"name": "theirs"}]}));
        let mut pod = json!({"spec": {}});
        set_account(&mut pod, &has, "v");
        assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "theirs");
        let mut pod = json!({"spec": {"imagePullSecrets": [{"name": "own"}]}});
        set_account(&mut pod, &has, "v");
        assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "own"}]));
    }

    #[test]
    fn mirrors_of_static_pods_have_no_account() {
        assert_eq!(account_name(&json!({})), Some("default"));
        let named = json!({"spec": {"serviceAccountName": "bot"}});
        assert_eq!(account_name(&named), Some("bot"));
        let mirror = json!({"metadata": {"annotations": {MIRROR: "x"}}});
        assert_eq!(account_name(&mirror), None);
    }
}
