//! Pushes and reads over SSH, against OpenSSH's own server.

use std::sync::Arc;

use bellwether_git::{Client, Credentials, Direct, Error};
use bellwether_testkit::{SshServer, skip};
use tokio::io::AsyncWriteExt as _;

use super::Fixture;

/// A server for the repositories of a fixture.
fn server(fixture: &Fixture) -> Option<SshServer> {
    let directory = fixture.directory.path().join("ssh");
    std::fs::create_dir(&directory).unwrap();
    let server = SshServer::start(&directory);
    if server.is_none() {
        skip("OpenSSH's server is not installed");
    }
    server
}

fn credentials(server: &SshServer, key: &str) -> Credentials {
    Credentials {
        ssh_key: Some(server.key(key)),
        known_hosts: Some(server.known_hosts("host")),
        ..Credentials::default()
    }
}

#[tokio::test]
async fn a_push_over_ssh_makes_one_commit_with_keys_of_any_type() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(ssh) = server(&fixture) else {
        return;
    };
    let address = ssh.url(&fixture.server.path("apps.git")).parse().unwrap();
    let mut push = fixture.push(&[("a.yaml", "a: 1\n"), ("b.yaml", "b: 1\n")]);
    push.address = address;
    push.credentials = credentials(&ssh, "client");
    let first = fixture.client.push(&push).await.unwrap();
    assert_eq!((first.written, first.removed), (2, 0));
    let second = fixture.client.push(&push).await.unwrap();
    assert!(!second.is_changed && second.commit == first.commit);
    for key in ["client-rsa", "client-ecdsa"] {
        push.credentials = credentials(&ssh, key);
        push.files = super::files_of(&[("a.yaml", key)]);
        let outcome = Client::new(Arc::new(Direct)).push(&push).await.unwrap();
        assert!(outcome.is_changed, "{key}: {}", ssh.log());
    }
    assert_eq!(fixture.files("main"), ["web/a.yaml"]);
    assert_eq!(fixture.git(&["rev-list", "--count", "main"]), "3");
    assert_eq!(fixture.git(&["fsck", "--strict"]), "");

    let client = &fixture.client;
    let read = client.read(&push.address, &push.credentials, Some("main"), "web");
    let read = read.await.unwrap();
    assert_eq!(&read.files["a.yaml"][..], b"client-ecdsa");
    assert_eq!(read.commit.to_string(), fixture.git(&["rev-parse", "main"]));
}

#[tokio::test]
async fn a_server_may_have_keys_of_any_type() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(ssh) = server(&fixture) else {
        return;
    };
    let mut push = fixture.push(&[]);
    push.address = ssh.url(&fixture.server.path("apps.git")).parse().unwrap();
    for key in ["host", "host-rsa", "host-ecdsa"] {
        push.credentials = credentials(&ssh, "client");
        push.credentials.known_hosts = Some(ssh.known_hosts(key));
        push.files = super::files_of(&[("a.yaml", key)]);
        let outcome = fixture.client.push(&push).await;
        assert!(outcome.unwrap().is_changed, "{key}: {}", ssh.log());
    }
}

#[tokio::test]
async fn what_is_not_a_server_of_ssh_is_refused() {
    let garbage = [
        b"SSH-2.0-x\r\n".to_vec(),
        (0..=255).cycle().take(4000).collect(),
    ]
    .concat();
    // A packet that is well formed and empty.
    let packet = [&b"SSH-2.0-x\r\n"[..], &[0, 0, 0, 12, 10, 20], &[0; 10]].concat();
    let key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg\n-----END PRIVATE KEY-----\n";
    for opening in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"SSH-1.5-old\r\n".to_vec(),
        vec![b'x'; 4000],
        Vec::new(),
        garbage,
        packet,
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = opening.clone();
        let peer = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(&sent).await;
            let _ = stream.shutdown().await;
            // What the client says is read to its end, so that it sees what was sent.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        });
        let credentials = Credentials {
            ssh_key: Some(key.to_owned()),
            known_hosts: Some(format!("[127.0.0.1]:{port} ssh-ed25519 AAAA\n")),
            ..Credentials::default()
        };
        let address = format!("ssh://git@127.0.0.1:{port}/apps.git")
            .parse()
            .unwrap();
        let read = Client::new(Arc::new(Direct))
            .read(&address, &credentials, None, "")
            .await;
        let error = read.unwrap_err();
        let is_expected = matches!(error, Error::Protocol(_) | Error::Unreachable { .. });
        assert!(
            is_expected,
            "{error}: {:?}",
            String::from_utf8_lossy(&opening)
        );
        peer.await.unwrap();
    }
}

#[tokio::test]
async fn a_branch_that_moved_is_built_upon_over_ssh() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(ssh) = server(&fixture) else {
        return;
    };
    let mut push = fixture.push(&[("a.yaml", "1")]);
    push.address = ssh.url(&fixture.server.path("apps.git")).parse().unwrap();
    push.credentials = credentials(&ssh, "client");
    fixture.client.push(&push).await.unwrap();
    let theirs = [("README.md", Some("hello"))];
    fixture
        .server
        .commit("apps.git", "main", "by hand", &theirs);
    push.files = super::files_of(&[("a.yaml", "2")]);
    assert!(fixture.client.push(&push).await.unwrap().is_changed);
    assert_eq!(fixture.files("main"), ["README.md", "web/a.yaml"]);
    assert_eq!(fixture.git(&["rev-list", "--count", "main"]), "3");
}

#[tokio::test]
async fn servers_that_are_not_known_and_keys_that_are_not_accepted_are_refused() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(ssh) = server(&fixture) else {
        return;
    };
    let mut push = fixture.push(&[("a.yaml", "1")]);
    push.address = ssh.url(&fixture.server.path("apps.git")).parse().unwrap();
    let good = credentials(&ssh, "client");
    for (list, why) in [
        (None, "known_hosts"),
        (
            Some("[127.0.0.1]:1 ssh-ed25519 AAAA\n".to_owned()),
            "has no key for it that can be used",
        ),
        (
            Some(ssh.known_hosts("stranger")),
            "not the one in known_hosts",
        ),
        (
            Some(format!(
                "@revoked {}{}",
                ssh.known_hosts("host"),
                ssh.known_hosts("host")
            )),
            "revoked",
        ),
    ] {
        push.credentials = Credentials {
            known_hosts: list,
            ..good.clone()
        };
        let error = fixture.client.push(&push).await.unwrap_err();
        assert!(matches!(error, Error::Key(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.is_temporary());
    }
    push.credentials = credentials(&ssh, "stranger");
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    push.credentials = good;
    push.address = ssh.url(&fixture.server.path("none.git")).parse().unwrap();
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("does not appear to be a git repository"),
        "{error}"
    );
    assert_eq!(fixture.server.git("apps.git", &["for-each-ref"]), "");
}
