//! Clients that come and say nothing, and clients that stay forever.

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
async fn a_silent_connection_is_closed() {
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
async fn a_connection_may_rest_between_requests_for_a_limited_time() {
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

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

/// What the server holds for all clients.
async fn held_bytes(server: &TestServer) -> usize {
    let admin = server.admin(HUB);
    let metrics = server.send(&admin, "GET", "/metrics", Value::Null).await;
    let text = metrics.expect(200);
    let mut lines = text.as_str().unwrap().lines();
    let value = lines.find_map(|line| line.strip_prefix("apiserver_held_bytes "));
    value.unwrap().parse().unwrap()
}

/// Requests of one user whose answers are not read, all on one connection.
async fn open_readers(
    server: &TestServer,
    user: &str,
    paths: &[(String, &str)],
) -> Vec<http::Response<hyper::body::Incoming>> {
    let proof = server.certify(user, &[], HUB);
    let stream = server.connect(proof.certificate.as_ref()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        // Little comes before it is asked for.
        .initial_stream_window_size(16 * 1024)
        .initial_connection_window_size(1 << 30)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut open = Vec::new();
    for (path, accept) in paths {
        let request = http::Request::get(format!("https://localhost{path}"));
        let request = request.header("accept", *accept);
        let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
        open.push(sender.send_request(request).await.unwrap());
    }
    open
}

#[tokio::test]
async fn slow_readers_hold_kilobytes_whatever_they_ask_for() {
    const READERS: usize = 100;
    const OBJECTS: usize = 12;
    let server = TestServer::start().await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    super::grant(&server, HUB, "ann", rules).await;
    let admin = server.admin(HUB);
    for number in 0..OBJECTS {
        // As large in its metadata as in its data.
        let text = format!("{number}").repeat(100_000 / (number / 10 + 1));
        let metadata = json!({"name": format!("m{number}"), "annotations": {"a": text}});
        let map = json!({"metadata": metadata, "data": {"a": text}});
        server.send(&admin, "POST", MAPS, map).await.expect(201);
    }
    let forms = [
        (format!("{MAPS}/m1"), JSON),
        (format!("{MAPS}?limit=500"), JSON),
        (format!("{MAPS}?resourceVersion=0"), JSON),
        (
            MAPS.to_owned(),
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ),
        (MAPS.to_owned(), "application/yaml"),
        (MAPS.to_owned(), "application/vnd.kubernetes.protobuf"),
        (format!("{MAPS}?watch=1"), JSON),
    ];
    let paths: Vec<(String, &str)> = forms.iter().cycle().take(READERS).cloned().collect();
    let readers = open_readers(&server, "ann", &paths).await;
    // Answers of a megabyte or two each: all of them would be more than a hundred.
    let held = held_bytes(&server).await;
    let most = READERS * 400 * 1024;
    assert!(held > 0 && held < most, "{held} bytes are held");
    // Slow is not wrong: everybody gets all of it in the end.
    for ((path, accept), reader) in paths.iter().zip(readers) {
        if path.ends_with("watch=1") {
            continue;
        }
        let body = reader.into_body().collect().await.unwrap().to_bytes();
        if !accept.starts_with(JSON) {
            assert!(body.len() > 1_500_000, "{accept}: {}", body.len());
            continue;
        }
        let answer: Value = serde_json::from_slice(&body).unwrap();
        let items = answer["items"].as_array().or(answer["rows"].as_array());
        assert_eq!(items.map_or(OBJECTS, Vec::len), OBJECTS, "{path}");
    }
    crate::common::eventually("everything is let go of", || async {
        (held_bytes(&server).await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_user_for_whom_too_much_is_held_waits_and_others_do_not() {
    let limits = Limits {
        bytes_per_user: 100 * 1024,
        ..Limits::default()
    };
    let options = ServerOptions {
        limits,
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    for user in ["ann", "bob"] {
        super::grant(&server, HUB, user, rules.clone()).await;
    }
    let admin = server.admin(HUB);
    let map = json!({"metadata": {"name": "m"}, "data": {"a": "x".repeat(500_000)}});
    server.send(&admin, "POST", MAPS, map).await.expect(201);
    let path = format!("{MAPS}/m");
    let twice = [(path.clone(), JSON), (path.clone(), JSON)];
    let slow = open_readers(&server, "bob", &twice).await;
    let bob = server.certify("bob", &[], HUB);
    crate::common::eventually("too much is held for bob", || async {
        let answer = server.send(&bob, "GET", MAPS, Value::Null).await;
        (answer.code == 429).then_some(())
    })
    .await;
    let ann = server.certify("ann", &[], HUB);
    server
        .send(&ann, "GET", &path, Value::Null)
        .await
        .expect(200);
    // What bob has asked for comes when he reads, one answer after the other.
    for reader in slow {
        let body = reader.into_body().collect().await.unwrap().to_bytes();
        assert!(body.len() > 500_000);
    }
    crate::common::eventually("bob's turn", || async {
        let answer = server.send(&bob, "GET", &path, Value::Null).await;
        (answer.code == 200).then_some(())
    })
    .await;
    // A body counts as well.
    let large = json!({"metadata": {"name": "n"}, "data": {"a": "x".repeat(200_000)}});
    let refused = server.send(&bob, "POST", MAPS, large.clone()).await;
    assert_eq!(refused.code, 429, "{}", refused.head);
    server.send(&admin, "POST", MAPS, large).await.expect(201);
}
