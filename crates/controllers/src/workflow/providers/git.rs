//! Pushes to repositories of git.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_git::signature::SigningKey;
use bellwether_git::{Client, Credentials, Description, Files, Push};
use bellwether_json::yaml::to_yaml;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::kube::Objects;

/// Bytes of all files of a push together.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The branch of a push that names none.
const BRANCH: &str = "main";
/// Name and address of who a commit is by, unless the push says.
const AUTHOR: (&str, &str) = ("Bellwether", "bellwether@users.noreply.bellwether.dev");
/// What the documentation writes for credentials that are left out.
const ELIDED: &str = "...";

/// Keys of Secrets with credentials.
mod key {
    /// The user.
    pub(super) const USERNAME: &str = "username";
    /// The password.
    pub(super) const PASSWORD: &str = "password";
    /// An access token, which is sent as a password.
    pub(super) const TOKEN: &str = "token";
    /// A token that is sent as a bearer.
    pub(super) const BEARER: &str = "bearerToken";
    /// Certificates that the server may be signed by.
    pub(super) const CERTIFICATES: &str = "ca.crt";
    /// A private key for SSH.
    pub(super) const SSH: &str = "ssh-privatekey";
    /// Keys that SSH servers may have.
    pub(super) const KNOWN_HOSTS: &str = "known_hosts";
}

/// Carries out a push.
pub(super) async fn push(
    client: &Client,
    objects: &Objects,
    namespace: &str,
    params: &Value,
    now: Timestamp,
) -> Result<Value, String> {
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    let address = text("repo")
        .parse()
        .map_err(|error: bellwether_git::Error| error.to_string())?;
    let time = match params["date"].as_str() {
        Some(date) => date
            .parse()
            .map_err(|error| format!("date {date:?}: {error}"))?,
        None => now,
    };
    let author = |name: &str, absent: &str| {
        let given = params["author"][name].as_str();
        given.unwrap_or(absent).to_owned()
    };
    let push = Push {
        address,
        credentials: credentials(objects, namespace, &params["credentials"]).await?,
        branch: params["branch"].as_str().unwrap_or(BRANCH).to_owned(),
        folder: text("path"),
        files: files(&params["files"])?,
        description: Description {
            author: (author("name", AUTHOR.0), author("email", AUTHOR.1)),
            message: text("message"),
            time,
        },
        key: signing_key(objects, namespace, &params["signingKey"]["secretRef"]).await?,
    };
    let outcome = client
        .push(&push)
        .await
        .map_err(|error| error.to_string())?;
    Ok(json!({
        "commit": outcome.commit.map(|commit| commit.to_string()).unwrap_or_default(),
        "changed": outcome.is_changed,
        "written": outcome.written,
        "removed": outcome.removed,
    }))
}

/// Files as they are pushed: objects as YAML with sorted fields, so that equal objects are equal files.
fn files(given: &Value) -> Result<Files, String> {
    let mut files = Files::new();
    let mut size = 0;
    for (path, content) in given.as_object().into_iter().flatten() {
        let text = match content {
            Value::String(text) => text.clone(),
            Value::Array(objects) => objects
                .iter()
                .map(to_yaml)
                .collect::<Vec<_>>()
                .join("---\n"),
            object => to_yaml(object),
        };
        size += text.len();
        if size > MAX_BYTES {
            return Err(format!(
                "the files are larger than {MAX_BYTES} bytes together"
            ));
        }
        files.insert(path.clone(), text.into_bytes());
    }
    Ok(files)
}

/// The name of a Secret: a text, or a reference to one.
fn secret_name(given: &Value) -> Result<Option<&str>, String> {
    let name = match given {
        Value::Null => return Ok(None),
        Value::String(name) => Some(name.as_str()),
        other => other["secretRef"]["name"]
            .as_str()
            .or_else(|| other["name"].as_str()),
    };
    match name {
        Some("" | ELIDED) => Ok(None),
        Some(name) => Ok(Some(name)),
        None => Err(
            "credentials have to be the name of a Secret, or secretRef with its name".to_owned(),
        ),
    }
}

async fn credentials(
    objects: &Objects,
    namespace: &str,
    given: &Value,
) -> Result<Credentials, String> {
    let Some(name) = secret_name(given)? else {
        return Ok(Credentials::default());
    };
    let data = objects.secret(namespace, name).await;
    let data = data.map_err(|problem| {
        format!("the Secret {name:?} with credentials cannot be read: {problem}")
    })?;
    from_secret(name, &data)
}

/// Credentials from the data of a Secret.
pub(crate) fn from_secret(
    name: &str,
    data: &BTreeMap<String, Vec<u8>>,
) -> Result<Credentials, String> {
    let text = |key: &str| {
        let value = data
            .get(key)
            .map(|value| String::from_utf8_lossy(value).trim().to_owned());
        value.filter(|value| !value.is_empty())
    };
    let credentials = Credentials {
        username: text(key::USERNAME),
        password: text(key::PASSWORD).or_else(|| text(key::TOKEN)),
        bearer: text(key::BEARER),
        certificates: text(key::CERTIFICATES),
        ssh_key: text(key::SSH).map(|key| key + "\n"),
        known_hosts: text(key::KNOWN_HOSTS),
    };
    if credentials == Credentials::default() {
        let known = [
            key::USERNAME,
            key::PASSWORD,
            key::TOKEN,
            key::BEARER,
            key::CERTIFICATES,
            key::SSH,
            key::KNOWN_HOSTS,
        ]
        .join(", ");
        return Err(format!("the Secret {name:?} has none of the keys {known}"));
    }
    Ok(credentials)
}

async fn signing_key(
    objects: &Objects,
    namespace: &str,
    given: &Value,
) -> Result<Option<Arc<SigningKey>>, String> {
    let Some(name) = given["name"].as_str().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let key = given["key"].as_str().unwrap_or(key::SSH);
    let data = objects.secret(namespace, name).await;
    let data = data.map_err(|problem| {
        format!("the Secret {name:?} with the signing key cannot be read: {problem}")
    })?;
    let pem = data
        .get(key)
        .ok_or_else(|| format!("the Secret {name:?} has no key {key:?}"))?;
    let read = SigningKey::read(&String::from_utf8_lossy(pem));
    read.map(|key| Some(Arc::new(key)))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_objects_are_equal_files() {
        let given = json!({
            "a.yaml": {"kind": "ConfigMap", "apiVersion": "v1", "data": {"b": "2", "a": "1"}},
            "b.yaml": [{"kind": "A"}, {"kind": "B"}],
            "c.txt": "text\n",
        });
        let files = files(&given).unwrap();
        let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
        assert_eq!(
            text("a.yaml"),
            "apiVersion: v1\ndata:\n  a: \"1\"\n  b: \"2\"\nkind: ConfigMap\n"
        );
        assert_eq!(text("b.yaml"), "kind: A\n---\nkind: B\n");
        assert_eq!(text("c.txt"), "text\n");
    }

    #[test]
    fn credentials_name_a_secret_in_several_ways() {
        assert_eq!(secret_name(&json!("git")), Ok(Some("git")));
        assert_eq!(
            secret_name(&json!({"secretRef": {"name": "git"}})),
            Ok(Some("git"))
        );
        assert_eq!(secret_name(&json!("...")), Ok(None));
        assert_eq!(secret_name(&Value::Null), Ok(None));
        assert!(secret_name(&json!({"secret": "git"})).is_err());
    }

    #[test]
    fn secrets_without_credentials_are_reported() {
        let data = |key: &str| BTreeMap::from([(key.to_owned(), b"value\n".to_vec())]);
        assert_eq!(
            from_secret("s", &data("token"))
                .unwrap()
                .password
                .as_deref(),
            Some("value")
        );
        assert!(
            from_secret("s", &data("other"))
                .unwrap_err()
                .contains("none of the keys")
        );
        let ssh = from_secret("s", &data("ssh-privatekey")).unwrap();
        assert_eq!(ssh.ssh_key.as_deref(), Some("value\n"));
    }
}
