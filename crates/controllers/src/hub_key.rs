//! Keys that a hub makes once and keeps in Secrets of its own, so that they outlive its processes.

use bellwether_runtime::created_by;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The namespace of the Secrets.
const NAMESPACE: &str = "kube-system";
/// The field with the key.
const FIELD: &str = "key";
/// Bytes of a key.
const LENGTH: usize = 32;

/// The key in the Secret of this name; it is made the first time.
pub(crate) async fn hub_key(client: &Client, name: &str) -> Result<Vec<u8>, kube::Error> {
    if let Some(known) = known_hub_key(client, name).await? {
        return Ok(known);
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let broken = |text: String| kube::Error::Service(text.into());
    let mut bytes = vec![0; LENGTH];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| broken(format!("no random numbers for Secret {NAMESPACE}/{name}")))?;
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([(FIELD.to_owned(), ByteString(bytes))].into()),
        ..Secret::default()
    };
    let created = match api.create(&created_by(), &secret).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(name).await?,
        other => other?,
    };
    bytes_of(created).ok_or_else(|| {
        broken(format!(
            "Secret {NAMESPACE}/{name}: field {FIELD} has fewer than {LENGTH} bytes; delete the Secret"
        ))
    })
}

/// The key in the Secret of this name, if it has been made.
pub(crate) async fn known_hub_key(
    client: &Client,
    name: &str,
) -> Result<Option<Vec<u8>>, kube::Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    Ok(api.get_opt(name).await?.and_then(bytes_of))
}

fn bytes_of(secret: Secret) -> Option<Vec<u8>> {
    let field = secret.data.and_then(|mut data| data.remove(FIELD));
    field.map(|field| field.0).filter(|key| key.len() >= LENGTH)
}
