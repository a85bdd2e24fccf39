//! Signed commits, checked by git itself.

use std::process::Command;
use std::sync::Arc;

use bellwether_git::signature::SigningKey;
use bellwether_testkit::skip;

use super::Fixture;

#[tokio::test]
async fn git_verifies_the_signature_of_a_commit() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&file)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("ssh-keygen is not installed");
    }
    let key = SigningKey::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
    assert!(public.starts_with(&key.public_key()), "{public}");
    let signers = directory.path().join("signers");
    std::fs::write(
        &signers,
        format!("bellwether@example.org {}\n", key.public_key()),
    )
    .unwrap();

    let mut push = fixture.push(&[("a.yaml", "1")]);
    push.key = Some(Arc::new(key));
    fixture.client.push(&push).await.unwrap();
    fixture.git(&[
        "config",
        "gpg.ssh.allowedSignersFile",
        signers.to_str().unwrap(),
    ]);
    fixture.git(&["verify-commit", "main"]);
    assert_eq!(
        fixture.git(&["log", "--format=%G? %GS", "main"]),
        "G bellwether@example.org"
    );
    assert_eq!(fixture.git(&["fsck", "--strict"]), "");
}
