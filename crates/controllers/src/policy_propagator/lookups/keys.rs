//! The key that a cluster decrypts with: a Secret in its namespace, made when it is first needed, and replaced
//! every thirty days.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::policy::names::{annotation, encryption, label};
use bellwether_json::time::format_time;
use bellwether_policy::propagation::ClusterKeys;
use bellwether_policy::template::Keys;
use bellwether_runtime::{Clock, created_by};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of an initialisation vector.
const VECTOR: usize = 16;
/// How long a key is used.
const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The keys of a cluster.
pub(super) struct Found {
    /// The keys, or why they cannot be used.
    pub(super) keys: Result<ClusterKeys, String>,
    /// When the present key is replaced.
    pub(super) due: Option<Timestamp>,
}

/// Returns the keys of a cluster, with a new one if it is time. A replica keeps its vector, so that a text that
/// stays the same is encrypted the same.
pub(super) async fn of_cluster(
    client: &Client,
    clock: &Clock,
    cluster: &str,
    vector: Option<&str>,
) -> Result<Found, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), cluster);
    let secret = match secrets.get_opt(encryption::SECRET).await? {
        Some(secret) => current(&secrets, secret, clock).await?,
        None => match secrets.create(&created_by(), &new_secret(clock)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                secrets.get(encryption::SECRET).await?
            }
            other => other?,
        },
    };
    let known = vector.and_then(|text| STANDARD.decode(text).ok());
    let vector = known
        .filter(|bytes| bytes.len() == VECTOR)
        .unwrap_or_else(|| random(VECTOR));
    Ok(Found {
        keys: keys(&secret, &vector),
        due: due(&secret),
    })
}

fn read(secret: &Secret, field: &str) -> Option<Vec<u8>> {
    let bytes = secret.data.as_ref()?.get(field)?;
    Some(bytes.0.clone()).filter(|bytes| !bytes.is_empty())
}

fn keys(secret: &Secret, vector: &[u8]) -> Result<ClusterKeys, String> {
    let previous = read(secret, encryption::PREVIOUS_KEY);
    let keys = Keys::new(read(secret, encryption::KEY), previous, Some(vector));
    let identity = read(secret, encryption::VERSION_KEY);
    let identity = identity.map(|key| Keys::new(Some(key), None, Some(vector)));
    let error = |error: bellwether_policy::template::EncryptionError| error.to_string();
    Ok(ClusterKeys {
        present: keys.map_err(error)?,
        vector: STANDARD.encode(vector),
        identity: identity.transpose().map_err(error)?,
    })
}

/// When a key has to be replaced; never if somebody says so.
fn due(secret: &Secret) -> Option<Timestamp> {
    let annotations = secret.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|all| all.get(key));
    let disabled = annotation(annotation::DISABLE_ROTATION);
    if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    let rotated = annotation(annotation::LAST_ROTATED);
    let rotated = rotated.and_then(|time| time.parse::<Timestamp>().ok());
    // One that says nothing is replaced at once.
    let rotated = rotated.unwrap_or(Timestamp::UNIX_EPOCH);
    rotated.checked_add(LIFETIME).ok()
}

/// The Secret, with a new key if it is time. Clusters still decrypt what the key before encrypted.
async fn current(
    secrets: &Api<Secret>,
    secret: Secret,
    clock: &Clock,
) -> Result<Secret, kube::Error> {
    if due(&secret).is_none_or(|due| due > clock.now()) {
        return Ok(secret);
    }
    let key = random(KEY);
    if key.is_empty() {
        return Ok(secret);
    }
    let rotated = rotated(secret, key, clock.now());
    match secrets
        .replace(encryption::SECRET, &created_by(), &rotated)
        .await
    {
        // Another policy was faster.
        Err(kube::Error::Api(status)) if status.is_conflict() => {
            secrets.get(encryption::SECRET).await
        }
        other => other,
    }
}

fn rotated(mut secret: Secret, key: Vec<u8>, now: Timestamp) -> Secret {
    let data = secret.data.get_or_insert_default();
    if let Some(old) = data.insert(encryption::KEY.to_owned(), ByteString(key)) {
        let version = data.entry(encryption::VERSION_KEY.to_owned());
        version.or_insert_with(|| old.clone());
        data.insert(encryption::PREVIOUS_KEY.to_owned(), old);
    }
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::LAST_ROTATED.to_owned(), format_time(now));
    secret
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
