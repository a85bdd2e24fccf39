//! Folders that are read over HTTP.

use bellwether_git::pack::Limits;
use bellwether_git::{Credentials, Error};

use super::Fixture;

#[tokio::test]
async fn a_folder_is_read_at_a_branch_a_tag_and_a_commit() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let long = "line\n".repeat(5000);
    let first = fixture.server.commit(
        "apps.git",
        "main",
        "one",
        &[
            ("chart/Chart.yaml", Some("name: x")),
            ("chart/templates/a.yaml", Some(&long)),
            ("other", Some("o")),
        ],
    );
    fixture.git(&["tag", "-a", "v1", "-m", "one", &first]);
    let second = fixture.server.commit(
        "apps.git",
        "main",
        "two",
        &[("chart/Chart.yaml", Some("name: y"))],
    );
    fixture.git(&["repack", "-a", "-d", "-q"]);
    for (revision, commit, name) in [
        (None, &second, "name: y"),
        (Some("main"), &second, "name: y"),
        (Some("v1"), &first, "name: x"),
        (Some(first.as_str()), &first, "name: x"),
    ] {
        let folder = fixture
            .client
            .read(
                &fixture.address(),
                &Credentials::default(),
                revision,
                "chart",
            )
            .await;
        let folder = folder.unwrap();
        assert_eq!(folder.commit.to_string(), *commit, "{revision:?}");
        let paths: Vec<&str> = folder.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["Chart.yaml", "templates/a.yaml"]);
        assert_eq!(folder.files["Chart.yaml"], name);
        assert_eq!(folder.files["templates/a.yaml"], long);
    }
}

#[tokio::test]
async fn servers_without_filters_are_read_as_well() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.git(&["config", "uploadpack.allowFilter", "false"]);
    fixture.server.commit(
        "apps.git",
        "main",
        "one",
        &[("a/b", Some("content")), ("c", Some("o"))],
    );
    let folder = fixture
        .client
        .read(&fixture.address(), &Credentials::default(), None, "a")
        .await
        .unwrap();
    assert_eq!(folder.files["b"], "content");
    // And those that speak only the first version of the protocol.
    fixture.server.speak_version_0();
    let folder = fixture
        .client
        .read(
            &fixture.address(),
            &Credentials::default(),
            Some("main"),
            "a",
        )
        .await
        .unwrap();
    assert_eq!(folder.files["b"], "content");
    assert!(
        fixture
            .client
            .push(&fixture.push(&[("a.yaml", "1")]))
            .await
            .unwrap()
            .is_changed
    );
}

#[tokio::test]
async fn what_is_not_there_is_reported() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture
        .server
        .commit("apps.git", "main", "one", &[("a", Some("content"))]);
    let read = async |revision, folder| {
        let read = fixture
            .client
            .read(
                &fixture.address(),
                &Credentials::default(),
                revision,
                folder,
            )
            .await;
        read.unwrap_err().to_string()
    };
    let error = read(Some("nope"), "").await;
    assert!(error.ends_with("has no branch or tag \"nope\""), "{error}");
    assert!(
        read(None, "chart")
            .await
            .starts_with("there is no folder \"chart\" at ")
    );
    assert!(
        read(Some("0123456789012345678901234567890123456789"), "")
            .await
            .contains("not our ref")
    );
}

#[tokio::test]
async fn a_repository_that_is_too_large_is_refused() {
    let Some(mut fixture) = Fixture::new() else {
        return;
    };
    let large = "0123456789".repeat(100_000);
    fixture.server.commit(
        "apps.git",
        "main",
        "one",
        &[("large", Some(&large)), ("small/a", Some("a"))],
    );
    let limits = Limits {
        unpacked: 100_000,
        ..Limits::default()
    };
    fixture.client = fixture.client.with_limits(limits);
    let address = fixture.address();
    let read = async |folder| {
        fixture
            .client
            .read(&address, &Credentials::default(), None, folder)
            .await
    };
    assert!(matches!(read("").await.unwrap_err(), Error::TooLarge(_)));
    // Only what is in the folder is fetched.
    assert_eq!(read("small").await.unwrap().files["a"], "a");
}
