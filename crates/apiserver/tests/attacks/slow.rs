//! Clients that come and say nothing, and clients that stay for ever.

use std::time::Duration;

use bellwether_apiserver::{HUB, Limits, ServerOptions};
use bellwether_store::{Options, Store};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::common::TestServer;

/// Reads until the server hangs up, or fails after a while.
async fn is_cut_off(mut stream: impl tokio::io::AsyncRead + Unpin) -> bool {
    let mut buffer = vec![0; 4096];
    let ended = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(Duration::from_mins(1), ended)
        .await
        .is_ok()
}

#[tokio::test]
async fn whoever_says_nothing_is_cut_off() {
    let options = ServerOptions {
        limits: Limits {
            header_time: Duration::from_millis(200),
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let admin = server.admin(HUB);
    let address = server.address.strip_prefix("https://").unwrap().to_owned();
    let no_handshake = TcpStream::connect(&address).await.unwrap();
    let mut half_handshake = TcpStream::connect(&address).await.unwrap();
    half_handshake.write_all(&[22, 3, 1, 2]).await.unwrap();
    let no_request = server.connect(admin.certificate.as_ref()).await.unwrap();
    let mut half_request = server.connect(admin.certificate.as_ref()).await.unwrap();
    half_request
        .write_all(b"GET /version HTTP/1.1\r\nhost: ")
        .await
        .unwrap();
    let mut half_preface = server.connect(admin.certificate.as_ref()).await.unwrap();
    half_preface.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    // Meanwhile everybody else is served.
    server
        .send(&admin, "GET", "/readyz", Value::Null)
        .await
        .expect(200);
    let cut_off = tokio::join!(
        is_cut_off(no_handshake),
        is_cut_off(half_handshake),
        is_cut_off(no_request),
        is_cut_off(half_request),
        is_cut_off(half_preface)
    );
    assert_eq!(cut_off, (true, true, true, true, true));
}

#[tokio::test]
async fn whoever_has_asked_may_take_a_rest_but_not_for_ever() {
    let options = ServerOptions {
        limits: Limits {
            header_time: Duration::from_millis(50),
            idle_time: Duration::from_millis(400),
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let admin = server.admin(HUB);
    let mut stream = server.connect(admin.certificate.as_ref()).await.unwrap();
    let began = tokio::time::Instant::now();
    let request = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(is_cut_off(stream).await);
    assert!(began.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn thousands_of_idle_watches_disturb_nobody() {
    const CONNECTIONS: usize = 4;
    const WATCHES: usize = 750;
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let mut watches = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = server.connect(admin.certificate.as_ref()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        for _ in 0..WATCHES {
            let request = http::Request::get(
                "https://localhost/api/v1/namespaces/default/configmaps?watch=1",
            )
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            watches.push(response.into_body());
        }
    }
    // A write goes through, and reaches them all.
    let path = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "x"}});
    server.send(&admin, "POST", path, map).await.expect(201);
    for watch in &mut watches {
        let frame = tokio::time::timeout(Duration::from_secs(20), watch.frame())
            .await
            .unwrap();
        let data = frame.unwrap().unwrap().into_data().unwrap();
        assert!(data.starts_with(b"{\"type\":\"ADDED\""));
    }
    // They go, and leave nothing behind that would keep the next from coming.
    drop(watches);
    server
        .send(&admin, "GET", path, Value::Null)
        .await
        .expect(200);
}
