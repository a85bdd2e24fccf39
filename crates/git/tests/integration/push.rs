//! Pushes over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether_git::{Client, Direct, Error};

use super::{Fixture, files_of};

#[tokio::test]
async fn a_push_makes_one_commit_and_the_second_none() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let push = fixture.push(&[("a.yaml", "a: 1\n"), ("cluster1/b.yaml", "b: 2\n")]);
    let first = fixture.client.push(&push).await.unwrap();
    assert!(first.is_changed);
    assert_eq!((first.written, first.removed), (2, 0));
    assert_eq!(fixture.files("main"), ["web/a.yaml", "web/cluster1/b.yaml"]);
    assert_eq!(fixture.git(&["show", "main:web/a.yaml"]), "a: 1");
    let log = fixture.git(&["log", "--format=%an <%ae> %aI %s", "main"]);
    assert_eq!(
        log,
        "Bellwether <bellwether@example.org> 2026-01-02T03:04:05+00:00 web v1"
    );

    let second = fixture.client.push(&push).await.unwrap();
    assert!(!second.is_changed);
    assert_eq!(second.commit, first.commit);
    assert_eq!(fixture.server.pushes(), 1);
    // A process that knows nothing finds the same.
    let other = Client::new(Arc::new(Direct)).push(&push).await.unwrap();
    assert_eq!(other, second);
    assert_eq!(fixture.git(&["fsck", "--strict"]), "");
}

#[tokio::test]
async fn stale_files_are_removed_and_others_stay() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.server.commit(
        "apps.git",
        "main",
        "by hand",
        &[("README.md", Some("hello")), ("db/x.yaml", Some("x"))],
    );
    let mut push = fixture.push(&[("a.yaml", "1"), ("b.yaml", "2")]);
    fixture.client.push(&push).await.unwrap();
    push.files = files_of(&[("b.yaml", "2"), ("c.yaml", "3")]);
    let outcome = fixture.client.push(&push).await.unwrap();
    assert_eq!((outcome.written, outcome.removed), (1, 1));
    assert_eq!(
        fixture.files("main"),
        ["README.md", "db/x.yaml", "web/b.yaml", "web/c.yaml"]
    );
    push.files.clear();
    fixture.client.push(&push).await.unwrap();
    assert_eq!(fixture.files("main"), ["README.md", "db/x.yaml"]);
    assert_eq!(fixture.git(&["rev-list", "--count", "main"]), "4");
    assert_eq!(fixture.git(&["fsck", "--strict"]), "");
}

#[tokio::test]
async fn a_branch_that_moves_meanwhile_is_built_upon() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture
        .server
        .commit("apps.git", "main", "one", &[("README.md", Some("1"))]);
    let rivals = Arc::new(AtomicUsize::new(0));
    let (server, count) = (Arc::clone(&fixture.server), Arc::clone(&rivals));
    // The first two pushes meet a branch that somebody else has just moved.
    fixture.server.before_push(move || {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number < 2 {
            let content = format!("rival {number}");
            server.commit("apps.git", "main", &content, &[("rival", Some(&content))]);
        }
        true
    });
    let outcome = fixture
        .client
        .push(&fixture.push(&[("a.yaml", "1")]))
        .await
        .unwrap();
    assert!(outcome.is_changed);
    assert_eq!(fixture.server.pushes(), 3);
    let log = fixture.git(&["log", "--format=%s", "main"]);
    assert_eq!(log, "web v1\nrival 1\nrival 0\none");
    assert_eq!(fixture.files("main"), ["README.md", "rival", "web/a.yaml"]);
}

#[tokio::test]
async fn a_branch_that_always_moves_is_given_up() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture
        .server
        .commit("apps.git", "main", "one", &[("README.md", Some("1"))]);
    let (server, count) = (Arc::clone(&fixture.server), AtomicUsize::new(0));
    fixture.server.before_push(move || {
        let content = count.fetch_add(1, Ordering::SeqCst).to_string();
        server.commit("apps.git", "main", &content, &[("rival", Some(&content))]);
        true
    });
    let error = fixture
        .client
        .push(&fixture.push(&[("a.yaml", "1")]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Contended { attempts: 5, .. }),
        "{error}"
    );
    assert!(error.is_temporary());
}

#[tokio::test]
async fn a_push_whose_answer_is_lost_is_not_made_twice() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.server.before_push(|| false);
    let push = fixture.push(&[("a.yaml", "1")]);
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    let outcome = fixture.client.push(&push).await.unwrap();
    assert!(!outcome.is_changed);
    assert_eq!(fixture.server.pushes(), 1);
    assert_eq!(fixture.git(&["rev-list", "--count", "main"]), "1");
}

#[tokio::test]
async fn a_refusal_of_the_server_is_reported() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let hook = fixture.server.path("apps.git").join("hooks/update");
    std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, executable).unwrap();
    let error = fixture
        .client
        .push(&fixture.push(&[("a.yaml", "1")]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the push to main was rejected: hook declined"
    );
    assert!(!error.is_temporary());
}

#[tokio::test]
async fn credentials_are_sent_and_wrong_ones_reported() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.server.require("git", "s3cret");
    let mut push = fixture.push(&[("a.yaml", "1")]);
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    push.credentials.password = Some("s3cret".to_owned());
    assert!(fixture.client.push(&push).await.unwrap().is_changed);
    push.credentials.username = Some("other".to_owned());
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(
        error.to_string().contains("check the credentials"),
        "{error}"
    );
    assert!(!error.to_string().contains("s3cret"));
}

#[tokio::test]
async fn a_repository_that_is_not_there_is_reported() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let mut push = fixture.push(&[("a.yaml", "1")]);
    push.address = fixture.server.url("none.git").parse().unwrap();
    let error = fixture.client.push(&push).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
}

#[tokio::test]
async fn pushes_of_many_folders_at_once_all_arrive() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let pushes: Vec<_> = (0..8)
        .map(|number| {
            let mut push = fixture.push(&[("a.yaml", "1")]);
            push.folder = format!("apps/{number}");
            push
        })
        .collect();
    let outcomes =
        futures::future::join_all(pushes.iter().map(|push| fixture.client.push(push))).await;
    assert!(
        outcomes
            .into_iter()
            .all(|outcome| outcome.unwrap().is_changed)
    );
    assert_eq!(fixture.git(&["rev-list", "--count", "main"]), "8");
    // One process does not compete with itself.
    assert_eq!(fixture.server.pushes(), 8);
}
