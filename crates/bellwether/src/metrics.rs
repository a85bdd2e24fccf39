//! `/metrics` for processes that serve nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The longest request that is read.
const MAX_REQUEST: u64 = 8192;
/// How long a scraper may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something that writes metrics in Prometheus' text format.
pub(crate) type Source = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves `/metrics` and `/healthz` at an address for as long as the process lives; returns the address.
pub(crate) async fn serve(address: SocketAddr, source: Source) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--metrics: cannot listen at {address}"))?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let source = Arc::clone(&source);
                    tokio::spawn(async move {
                        // Who hangs up, or asks for nothing, gets nothing.
                        let _ = tokio::time::timeout(PATIENCE, answer(stream, &source)).await;
                    });
                }
                // Too many connections: they end after a while.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    });
    Ok(bound)
}

/// Answers one request, and hangs up.
async fn answer(mut stream: TcpStream, source: &Source) -> std::io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(MAX_REQUEST)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    // The rest of the request is read, lest it be taken for an abrupt end.
    while lines
        .next_line()
        .await?
        .is_some_and(|line| !line.is_empty())
    {}
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next());
    let path = path.and_then(|path| path.split('?').next());
    let (status, body) = match (method, path) {
        ("GET", Some("/metrics")) => ("200 OK", source()),
        ("GET", Some("/healthz" | "/readyz" | "/livez")) => ("200 OK", "ok".to_owned()),
        ("GET", _) => ("404 Not Found", "there is only /metrics\n".to_owned()),
        _ => (
            "405 Method Not Allowed",
            "only GET is answered\n".to_owned(),
        ),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    writer.write_all(head.as_bytes()).await?;
    writer.write_all(body.as_bytes()).await?;
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn scrapers_get_what_the_source_says_and_nothing_else() {
        let source: Source = Arc::new(|| "bellwether_test 1\n".to_owned());
        let address = serve(([127, 0, 0, 1], 0).into(), source).await.unwrap();
        let check = async |request: &str, status: &str, body: &str| {
            let answer = ask(address, request).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            assert!(answer.ends_with(body), "{answer}");
        };
        check(
            "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n",
            "200",
            "bellwether_test 1\n",
        )
        .await;
        check("GET /healthz HTTP/1.1\r\n\r\n", "200", "ok").await;
        check(
            "GET /secrets HTTP/1.1\r\n\r\n",
            "404",
            "there is only /metrics\n",
        )
        .await;
        check(
            "POST /metrics HTTP/1.1\r\n\r\n",
            "405",
            "only GET is answered\n",
        )
        .await;
    }
}
