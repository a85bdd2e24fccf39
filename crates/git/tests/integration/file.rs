//! Repositories on this machine.

use bellwether_git::{Address, Credentials};

use super::{Fixture, files_of};

#[tokio::test]
async fn a_repository_on_this_machine_is_pushed_to_and_read() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture
        .server
        .commit("apps.git", "main", "one", &[("README.md", Some("hello"))]);
    fixture.git(&["repack", "-a", "-d", "-q"]);
    let address = Address::File(fixture.server.path("apps.git"));
    let mut push = fixture.push(&[("a.yaml", "1"), ("b.yaml", "2")]);
    push.address = address.clone();
    assert!(fixture.client.push(&push).await.unwrap().is_changed);
    assert!(!fixture.client.push(&push).await.unwrap().is_changed);
    // Somebody else moves the branch.
    fixture.server.commit(
        "apps.git",
        "main",
        "two",
        &[("README.md", Some("hello again"))],
    );
    push.files = files_of(&[("a.yaml", "1")]);
    let outcome = fixture.client.push(&push).await.unwrap();
    assert_eq!((outcome.written, outcome.removed), (0, 1));
    assert_eq!(fixture.files("main"), ["README.md", "web/a.yaml"]);
    assert_eq!(
        fixture.git(&["log", "--format=%s", "main"]),
        "web v1\ntwo\nweb v1\none"
    );
    assert_eq!(fixture.git(&["fsck", "--strict"]), "");
    let folder = fixture
        .client
        .read(&address, &Credentials::default(), Some("main"), "web")
        .await
        .unwrap();
    assert_eq!(folder.files["a.yaml"], "1");
    assert_eq!(folder.commit, outcome.commit.unwrap());
}
