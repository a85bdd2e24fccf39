//! The key that a cluster decrypts with: a Secret in its namespace, made when it is first needed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::policy::names::{annotation, encryption, label};
use bellwether_json::time::format_time;
use bellwether_policy::template::Keys;
use bellwether_runtime::{Clock, created_by};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of an initialisation vector.
const VECTOR: usize = 16;

/// Returns the keys of a cluster and the initialisation vector in base64, or why they cannot be used. A replica
/// keeps its vector, so that a text that stays the same is encrypted the same.
pub(super) async fn of_cluster(
    client: &Client,
    clock: &Clock,
    cluster: &str,
    vector: Option<&str>,
) -> Result<Result<(Keys, String), String>, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), cluster);
    let secret = match secrets.get_opt(encryption::SECRET).await? {
        Some(secret) => secret,
        None => match secrets.create(&created_by(), &new_secret(clock)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                secrets.get(encryption::SECRET).await?
            }
            other => other?,
        },
    };
    let read = |field: &str| {
        let data = secret.data.as_ref()?;
        data.get(field).map(|bytes| bytes.0.clone())
    };
    let known = vector.and_then(|text| STANDARD.decode(text).ok());
    let vector = known
        .filter(|bytes| bytes.len() == VECTOR)
        .unwrap_or_else(|| random(VECTOR));
    let previous = read(encryption::PREVIOUS_KEY).filter(|key| !key.is_empty());
    let keys = Keys::new(read(encryption::KEY), previous, Some(&vector));
    Ok(keys
        .map(|keys| (keys, STANDARD.encode(&vector)))
        .map_err(|error| error.to_string()))
}

fn new_secret(clock: &Clock) -> Secret {
    let one = |key: &str, value: String| Some(BTreeMap::from([(key.to_owned(), value)]));
    Secret {
        metadata: ObjectMeta {
            name: Some(encryption::SECRET.to_owned()),
            labels: one(label::BACKUP, encryption::BACKUP.to_owned()),
            annotations: one(annotation::LAST_ROTATED, format_time(clock.now())),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            encryption::KEY.to_owned(),
            ByteString(random(KEY)),
        )])),
        ..Secret::default()
    }
}

/// Random bytes. The system always has some; without them the key is too short to be used.
fn random(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}
