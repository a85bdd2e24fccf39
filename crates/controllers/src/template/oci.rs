//! Artifacts in registries: charts of Helm, and archives as Flux pushes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_git::Credentials;
use bellwether_helm::oci::{Blob, CHART_LAYER};
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::fetch::{MAX_ARCHIVE, Problem, Sources, check_pinned, digest, succeeded};

/// The largest manifest that is read.
const MAX_MANIFEST: usize = 4 * 1024 * 1024;
/// What is accepted as a manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A header of a request.
pub(super) type Header = (HeaderName, HeaderValue);

impl Sources {
    /// Fetches the archive of an artifact. Returns it with the digest of the manifest.
    pub(super) async fn artifact(
        &self,
        host: &str,
        name: &str,
        reference: &str,
        pinned: &str,
        credentials: &Credentials,
    ) -> Result<(String, Bytes), Problem> {
        let base = format!("{}://{host}/v2/{name}", scheme(host));
        let url = format!("{base}/manifests/{reference}");
        let accept = (header::ACCEPT, HeaderValue::from_static(MANIFEST));
        let mut headers = basic(credentials)?;
        let mut request = headers.clone();
        request.push(accept.clone());
        let mut got = self.ask(&url, request, credentials, MAX_MANIFEST).await?;
        if got.status == StatusCode::UNAUTHORIZED
            && let Some(challenge) = Challenge::read(&got.headers)
        {
            headers = vec![self.token(&challenge, name, credentials).await?];
            let mut request = headers.clone();
            request.push(accept);
            got = self.ask(&url, request, credentials, MAX_MANIFEST).await?;
        }
        let got = succeeded(&url, got)?;
        let found = digest(&got.body);
        check_pinned(&url, pinned, &found)?;
        let layer = layer(&got.body).map_err(Problem::lasting)?;
        if layer.size > MAX_ARCHIVE as u64 {
            let message = format!("the archive of {url} is larger than {MAX_ARCHIVE} bytes");
            return Err(Problem::lasting(message));
        }
        let blob = format!("{base}/blobs/{}", layer.digest);
        let (_, archive) = self
            .download(&blob, &layer.digest, headers, credentials, MAX_ARCHIVE)
            .await?;
        Ok((found, archive))
    }

    /// Asks for the token that a registry wants.
    async fn token(
        &self,
        challenge: &Challenge,
        name: &str,
        credentials: &Credentials,
    ) -> Result<Header, Problem> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
        }
        let separator = if challenge.realm.contains('?') {
            '&'
        } else {
            '?'
        };
        let url = format!(
            "{}{separator}service={}&scope=repository:{name}:pull",
            challenge.realm, challenge.service
        );
        let got = self
            .ask(&url, basic(credentials)?, credentials, MAX_MANIFEST)
            .await?;
        let got = succeeded(&url, got)?;
        let answer: Answer = serde_json::from_slice(&got.body).map_err(|error| {
            Problem::lasting(format!("{url}: the answer has no token: {error}"))
        })?;
        let token = if answer.token.is_empty() {
            answer.access_token
        } else {
            answer.token
        };
        authorization(&format!("Bearer {token}"))
    }
}

/// What a registry wants before it answers.
#[derive(Debug, PartialEq, Eq)]
struct Challenge {
    realm: String,
    service: String,
}

impl Challenge {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
        let text = text
            .strip_prefix("Bearer ")
            .or_else(|| text.strip_prefix("bearer "))?;
        let field = |name: &str| {
            let (_, rest) = text.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let realm = field("realm").filter(|realm| realm.starts_with("http"))?;
        let service = field("service").unwrap_or_default().replace(' ', "%20");
        Some(Self { realm, service })
    }
}

/// Registries on this machine speak HTTP, as they do to other clients.
fn scheme(host: &str) -> &'static str {
    let name = host.split(':').next().unwrap_or_default();
    if matches!(name, "localhost" | "127.0.0.1") {
        "http"
    } else {
        "https"
    }
}

/// The layer with the archive: a chart of Helm, or the first one that is a packed archive.
fn layer(manifest: &[u8]) -> Result<Blob, String> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        layers: Vec<Blob>,
    }
    let manifest: Manifest = serde_json::from_slice(manifest)
        .map_err(|error| format!("the manifest of the registry is unreadable: {error}"))?;
    let chart = manifest
        .layers
        .iter()
        .find(|layer| layer.media_type == CHART_LAYER);
    let packed = |layer: &&Blob| {
        layer.media_type.ends_with("tar+gzip") || layer.media_type.ends_with("tar.gzip")
    };
    let found = chart.or_else(|| manifest.layers.iter().find(packed));
    let found = found.ok_or("the artifact has no layer with a packed archive (tar+gzip)")?;
    if found.digest.starts_with("sha256:") {
        Ok(found.clone())
    } else {
        Err(format!("{:?} is not a digest of type sha256", found.digest))
    }
}

/// The header for a user and password, or a token; none if there are none.
pub(super) fn basic(credentials: &Credentials) -> Result<Vec<Header>, Problem> {
    let text = if let Some(token) = &credentials.bearer {
        format!("Bearer {token}")
    } else if let Some(password) = &credentials.password {
        let user = credentials.username.as_deref().unwrap_or("git");
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    } else {
        return Ok(Vec::new());
    };
    authorization(&text).map(|header| vec![header])
}

fn authorization(text: &str) -> Result<Header, Problem> {
    let value = HeaderValue::from_str(text);
    let mut value =
        value.map_err(|_| Problem::lasting("the token has characters that no token has"))?;
    value.set_sensitive(true);
    Ok((header::AUTHORIZATION, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_registries_are_read() {
        let text = "Bearer realm=\"https://auth.example.org/token\",service=\"registry.example.org\",scope=\"x\"";
        let headers = [(header::WWW_AUTHENTICATE, HeaderValue::from_static(text))];
        let challenge = Challenge::read(&headers.into_iter().collect()).unwrap();
        assert_eq!(challenge.realm, "https://auth.example.org/token");
        assert_eq!(challenge.service, "registry.example.org");
        let headers = [(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"x\""),
        )];
        assert_eq!(Challenge::read(&headers.into_iter().collect()), None);
    }

    #[test]
    fn the_layer_with_the_archive_is_found() {
        let text = r#"{"layers":[{"mediaType":"text/plain","digest":"sha256:0","size":1},
            {"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","digest":"sha256:1","size":2}]}"#;
        assert_eq!(layer(text.as_bytes()).unwrap().digest, "sha256:1");
        assert!(layer(b"{}").unwrap_err().contains("no layer"));
        assert!(
            layer(text.replace("sha256:1", "md5:1").as_bytes())
                .unwrap_err()
                .contains("sha256")
        );
    }
}
