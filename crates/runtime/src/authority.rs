//! A client that follows the authority of its API server: the file is read again from time to time, and a file with other
//! certificates gives another client.
//!
//! Connections that are open go on with what they were opened with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

/// How often the file is read: it is small, and the kubelet takes longer to replace it.
const INTERVAL: Duration = Duration::from_secs(10);

/// A client, and what it trusts.
struct Trusting {
    client: Client,
    authority: Vec<u8>,
    read_at: Instant,
}

/// Returns a client that is made by `connect`, and made again whenever the file has changed. While the new content gives no
/// client, the one before it is used.
pub(crate) async fn follow_authority<C, F, E>(file: PathBuf, connect: C) -> Result<Client, E>
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<Client, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    // Read before the client reads it: what changes in between is found later.
    let authority = read(&file).await;
    let client = connect().await?;
    let namespace = client.default_namespace().to_owned();
    let trusting = Arc::new(Mutex::new(Trusting {
        client,
        authority,
        read_at: Instant::now(),
    }));
    let (file, connect) = (Arc::new(file), Arc::new(connect));
    let following = tower::service_fn(move |request: Request<Body>| {
        let (trusting, file) = (Arc::clone(&trusting), Arc::clone(&file));
        let connect = Arc::clone(&connect);
        async move {
            if is_due(&trusting) {
                let authority = read(&file).await;
                let has_changed = !authority.is_empty() && authority != trusting.lock().authority;
                if has_changed {
                    match connect().await {
                        Ok(client) => {
                            tracing::info!("the authority of the API server was replaced");
                            let mut trusting = trusting.lock();
                            trusting.client = client;
                            trusting.authority = authority;
                        }
                        Err(error) => {
                            tracing::warn!(%error, "cannot use the authority of the API server");
                        }
                    }
                }
            }
            let client = trusting.lock().client.clone();
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Ok(Client::new(following, namespace))
}

/// Returns true for one request in each interval.
fn is_due(trusting: &Mutex<Trusting>) -> bool {
    let mut trusting = trusting.lock();
    let is_due = trusting.read_at.elapsed() >= INTERVAL;
    if is_due {
        trusting.read_at = Instant::now();
    }
    is_due
}

/// The content of the file; nothing if it cannot be read, as while it is replaced.
async fn read(file: &Path) -> Vec<u8> {
    tokio::fs::read(file).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    /// A client whose server answers with the authority that it was made with; only `good…` gives one.
    fn connect(file: &Path) -> Result<Client, std::io::Error> {
        let authority = std::fs::read(file)?;
        if !authority.starts_with(b"good") {
            return Err(std::io::Error::other("no certificate"));
        }
        let server = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(authority.clone());
            async move { Ok::<_, BoxError>(Response::new(body)) }
        });
        Ok(Client::new(server, "fleet"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_replaced_authority_is_trusted_soon() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.crt");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("good one");
        let path = file.clone();
        let client =
            follow_authority(file.clone(), move || std::future::ready(connect(&path))).await;
        let client = client.unwrap();
        assert_eq!(client.default_namespace(), "fleet");
        let ask = async || {
            let request = Request::get("/version").body(Vec::new()).unwrap();
            client.request_text(request).await.unwrap()
        };
        write("good two");
        assert_eq!(ask().await, "good one", "read a moment ago");
        tokio::time::advance(INTERVAL).await;
        assert_eq!(ask().await, "good two");
        // What cannot be used changes nothing, and what comes after it is used.
        for bad in ["", "damaged"] {
            write(bad);
            tokio::time::advance(INTERVAL).await;
            assert_eq!(ask().await, "good two", "{bad}");
        }
        std::fs::remove_file(&file).unwrap();
        tokio::time::advance(INTERVAL).await;
        assert_eq!(ask().await, "good two");
        write("good three");
        tokio::time::advance(INTERVAL).await;
        assert_eq!(ask().await, "good three");
    }
}
