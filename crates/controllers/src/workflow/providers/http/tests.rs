//! Where requests are sent, and how.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

#[track_caller]
fn check(patterns: &[&str], host: &str, address: &str, allowed: bool) {
    let policy = HttpPolicy {
        allowed: patterns.iter().map(|text| text.parse().unwrap()).collect(),
    };
    assert_eq!(
        policy.allows(host, address.parse().unwrap()),
        allowed,
        "{patterns:?} {host} {address}"
    );
}

#[test]
fn this_machine_has_to_be_allowed_by_name() {
    check(&["*"], "example.org", "192.0.2.1", true);
    check(&["*"], "localhost", "127.0.0.1", false);
    check(&["*"], "trick.example.org", "127.0.0.1", false);
    check(&["*"], "trick.example.org", "::ffff:127.0.0.1", false);
    check(&["*", "loopback"], "localhost", "127.0.0.1", true);
    check(&["*.example.org"], "hooks.example.org", "192.0.2.1", true);
    check(&["*.example.org"], "example.com", "192.0.2.1", false);
    check(
        &["hooks.example.org"],
        "HOOKS.example.org",
        "192.0.2.1",
        true,
    );
}

#[test]
fn metadata_of_clouds_cannot_be_allowed() {
    for address in [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "0.0.0.0",
        "100.100.100.200",
        "168.63.129.16",
        "64:ff9b::a9fe:a9fe",
    ] {
        check(&["*", "loopback", "metadata"], "metadata", address, false);
    }
    check(&["*"], "example.org", "64:ff9b::c000:201", true);
}

/// A server that gives these answers, one a connection, and hands over what it was sent.
async fn serve(answers: Vec<String>) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.replace("HERE", &address.to_string());
            let _ = sender.send(exchange(&mut stream, &answer).await);
        }
    });
    (address, receiver)
}

/// Reads a request to the end of its body, and answers it.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, answer: &str) -> String {
    let mut sent = String::new();
    let mut buffer = [0; 1024];
    loop {
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        sent.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let is_chunked = sent.contains("chunked");
        let has_ended = match sent.split_once("\r\n\r\n") {
            Some((_, body)) if is_chunked => body.contains("0\r\n") && body.ends_with("\r\n\r\n"),
            Some((head, body)) => {
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                body.len() >= length.map_or(0, |length| length.parse().unwrap())
            }
            None => false,
        };
        if has_ended || read == 0 {
            break;
        }
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    sent
}

fn redirection(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn client() -> HttpClient {
    HttpClient::new(&HttpPolicy {
        allowed: vec![HostPattern::Loopback],
    })
}

#[tokio::test]
async fn a_request_goes_on_to_where_an_answer_sends_it() {
    let answers = vec![redirection(302, "/next"), ANSWER.to_owned()];
    let (address, mut sent) = serve(answers).await;
    let params = json!({"method": "POST", "url": format!("http://{address}/"),
        "request": {"body": "{}"}});
    let answer = client().send(&params, &Extras::default()).await.unwrap();
    assert_eq!(
        (&answer["statusCode"], &answer["body"]),
        (&json!(200), &json!("ok"))
    );
    assert!(sent.recv().await.unwrap().starts_with("POST / "));
    let second = sent.recv().await.unwrap();
    assert!(second.starts_with("GET /next "), "{second}");
}

#[tokio::test]
async fn what_secrets_hold_is_sent_to_the_first_host_only() {
    let (away, mut second) = serve(vec![ANSWER.to_owned()]).await;
    let (address, mut first) = serve(vec![redirection(307, &format!("http://{away}/"))]).await;
    let params = json!({"method": "GET", "url": format!("http://{address}/"),
        "request": {"header": {"Authorization": "hush"}}});
    let extras = Extras {
        secret_headers: vec![("X-Key".to_owned(), "hush".to_owned())],
        headers: vec![("Idempotency-Key".to_owned(), "once".to_owned())],
        tls: None,
    };
    client().send(&params, &extras).await.unwrap();
    let first = first.recv().await.unwrap();
    assert_eq!(first.matches("hush").count(), 2, "{first}");
    let second = second.recv().await.unwrap();
    assert!(
        !second.contains("hush") && second.contains("once"),
        "{second}"
    );
}

#[tokio::test]
async fn redirects_lead_nowhere_that_is_not_allowed_and_end() {
    let (address, _sent) = serve(vec![redirection(302, "http://169.254.169.254/")]).await;
    let params = json!({"method": "GET", "url": format!("http://{address}/")});
    let refused = client()
        .send(&params, &Extras::default())
        .await
        .unwrap_err();
    assert!(refused.contains("--workflow-http-allow"), "{refused}");
    let (address, _sent) = serve(vec![redirection(302, "http://HERE/"); 12]).await;
    let params = json!({"method": "GET", "url": format!("http://{address}/")});
    let refused = client()
        .send(&params, &Extras::default())
        .await
        .unwrap_err();
    assert!(refused.ends_with("stopped after 10 redirects"), "{refused}");
}

#[tokio::test]
async fn headers_after_the_body_are_sent_and_read() {
    let answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n";
    let (address, mut sent) = serve(vec![answer.to_owned()]).await;
    let params = json!({"method": "POST", "url": format!("http://{address}/"),
        "request": {"body": "hello", "trailer": {"X-Check": "42"}}});
    let answer = client().send(&params, &Extras::default()).await.unwrap();
    assert_eq!(answer["trailer"], json!({"X-Sum": ["7"]}));
    let sent = sent.recv().await.unwrap().to_ascii_lowercase();
    assert!(
        sent.contains("hello") && sent.contains("x-check: 42"),
        "{sent}"
    );
    let params = json!({"method": "POST", "url": format!("http://{address}/"),
        "request": {"trailer": {"not a name": "42"}}});
    let refused = client()
        .send(&params, &Extras::default())
        .await
        .unwrap_err();
    assert!(refused.contains("trailer"), "{refused}");
}

/// A certificate authority, and a certificate that it issued for this machine.
fn issued() -> (String, rcgen::CertifiedKey<rcgen::KeyPair>) {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = params.signed_by(&signing_key, &issuer).unwrap();
    (root, rcgen::CertifiedKey { cert, signing_key })
}

/// A server that wants to see a certificate of its authority.
async fn serve_encrypted(root: &str, own: &rcgen::CertifiedKey<rcgen::KeyPair>) -> SocketAddr {
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::server::WebPkiClientVerifier;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap())
        .unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
        .build()
        .unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                exchange(&mut stream, ANSWER).await;
            }
        }
    });
    address
}

#[tokio::test]
async fn certificates_of_a_secret_are_trusted_and_shown() {
    use base64::Engine as _;
    let (root, own) = issued();
    let address = serve_encrypted(&root, &own).await;
    let params = json!({"method": "GET", "url": format!("https://{address}/")});
    let refused = client().send(&params, &Extras::default()).await;
    assert!(refused.is_err(), "a server that nobody vouches for");
    let key = own.signing_key.serialize_pem();
    // Templates of others have values encoded twice.
    let twice = base64::engine::general_purpose::STANDARD.encode(own.cert.pem());
    let entry = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let secret = [
        entry("ca.crt", &root),
        entry("client.crt", &twice),
        entry("client.key", &key),
    ];
    let data: std::collections::BTreeMap<_, _> = secret.into();
    let extras = |data: &std::collections::BTreeMap<String, Vec<u8>>| Extras {
        tls: Some(Arc::new(tls::from_secret(data).unwrap())),
        ..Extras::default()
    };
    let answer = client().send(&params, &extras(&data)).await.unwrap();
    assert_eq!(answer["body"], "ok");
    let mut anonymous = data.clone();
    anonymous.remove("client.crt");
    let refused = client().send(&params, &extras(&anonymous)).await;
    assert!(refused.is_err(), "the server wants a certificate");
    let mut without_key = data;
    without_key.remove("client.key");
    let problem = tls::from_secret(&without_key).unwrap_err();
    assert_eq!(problem, "it has client.crt, but no client.key");
}
