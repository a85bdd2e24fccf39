//! HelmTemplates and KustomizePatches: sources are fetched, Applications written, and templates that never settle stopped.
//! Time is real here: servers on loopback do not know of a clock that leaps.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails, and tables are written in place"
)]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use bellwether_api::oam::Application;
use bellwether_api::workflow::{HelmTemplate, KustomizePatch};
use bellwether_controllers::template;
use bellwether_controllers::workflow::{HttpPolicy, WorkflowOptions};
use bellwether_runtime::Clock;
use bellwether_testkit::{GitServer, Polling, skip};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::common::{START, World};

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const TEMPLATE: &str = "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: x}\nspec:\n  components:\n  - {name: web, \
                        type: webservice, properties: {image: {{ .Values.image }}}}\n  workflow: {steps: []}\n";
const RANDOM: &str = "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: x}\nspec:\n  components:\n  - {name: web, \
                      type: webservice, properties: {image: {{ randAlphaNum 8 }}}}\n";
const BASE: &str = "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: base}\nspec:\n  components:\n  - {name: instance, \
                    type: webservice, properties: {image: base, port: 80}}\n";

/// A hub with the controllers of templates, and an Application with steps before rendering.
struct Fixture {
    world: World,
    directory: TempDir,
    controllers: Vec<JoinHandle<()>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        for controller in &self.controllers {
            controller.abort();
        }
    }
}

impl Fixture {
    async fn new() -> Self {
        let world = World::with_clock(Clock::of_runtime(START.parse().unwrap())).await;
        let directory = tempfile::tempdir().unwrap();
        let options = WorkflowOptions {
            http: HttpPolicy {
                allowed: vec!["loopback".parse().unwrap()],
            },
            git_directories: vec![directory.path().to_owned()],
            source_cache: Some(directory.path().join("cache")),
            ..WorkflowOptions::default()
        };
        let controllers = vec![
            tokio::spawn(template::run::<HelmTemplate>(world.hub(), options.clone())),
            tokio::spawn(template::run::<KustomizePatch>(world.hub(), options)),
        ];
        let steps = json!([
            {"name": "t", "type": "helm-template", "stage": "pre-render"},
            {"name": "k", "type": "kustomize-patch", "stage": "pre-render"},
        ]);
        let application = json!({
            "apiVersion": "core.oam.dev/v1beta1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"components": [], "workflow": {"steps": steps}},
        });
        let fixture = Self {
            world,
            directory,
            controllers,
        };
        let application = serde_json::from_value(application).unwrap();
        fixture
            .applications()
            .create(&PostParams::default(), &application)
            .await
            .unwrap();
        fixture
    }

    /// None if git is not installed.
    fn git(&self) -> Option<GitServer> {
        let Some(server) = GitServer::start(self.directory.path()) else {
            skip("git is not installed");
            return None;
        };
        server.create("templates.git");
        Some(server)
    }

    fn applications(&self) -> Api<Application> {
        Api::namespaced(self.world.client.clone(), "default")
    }

    fn helm(&self) -> Api<HelmTemplate> {
        Api::namespaced(self.world.client.clone(), "default")
    }

    fn patches(&self) -> Api<KustomizePatch> {
        Api::namespaced(self.world.client.clone(), "default")
    }

    async fn create_helm(&self, spec: Value) {
        let object = object("HelmTemplate", "t", spec);
        let object = serde_json::from_value(object).unwrap();
        self.helm()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Begins another execution of the step.
    async fn again(&self, session: &str) {
        let patch = Patch::Merge(json!({"spec": {"session": session}}));
        self.helm()
            .patch("shop-t", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits for what a HelmTemplate reports of its present generation.
    async fn progress(&self) -> String {
        eventually(async || {
            let object = self.helm().get("shop-t").await.unwrap();
            progress_of(&serde_json::to_value(object).unwrap())
        })
        .await
    }

    async fn image(&self) -> String {
        let application = self.applications().get("shop").await.unwrap();
        let component = application.spec.components.first().unwrap();
        component.properties.as_ref().unwrap()["image"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// An object as the engine makes it for a step.
fn object(kind: &str, step: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "workflow.bellwether.dev/v1alpha1", "kind": kind,
        "metadata": {
            "name": format!("shop-{step}"), "namespace": "default",
            "labels": {"app.oam.dev/name": "shop", "app.oam.dev/namespace": "default"},
            "annotations": {"app.oam.dev/workflow-context": json!({"appName": "shop", "stepName": step}).to_string()},
        },
        "spec": spec,
    })
}

/// Looks until something is found, for a minute at most: git's own programs take their time on a busy machine.
pub(crate) async fn eventually<T>(look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let polling = Polling {
        attempts: 6000,
        interval: Duration::from_millis(10),
    };
    polling.until("it is found", look).await
}

fn progress_of(object: &Value) -> Result<String, String> {
    let (status, metadata) = (&object["status"], &object["metadata"]);
    let condition = &status["conditions"][0];
    if status["observedGeneration"] != metadata["generation"]
        || condition["type"] != "workflow-progress"
    {
        return Err(status.to_string());
    }
    let text = |name: &str| condition[name].as_str().unwrap_or_default();
    Ok(format!(
        "{} {}: {}",
        text("status"),
        text("reason"),
        text("message")
    ))
}

#[tokio::test]
async fn an_application_is_written_from_a_chart_and_settles() {
    let fixture = Fixture::new().await;
    let Some(git) = fixture.git() else { return };
    let files = [
        ("chart/Chart.yaml", Some(CHART)),
        ("chart/templates/app.yaml", Some(TEMPLATE)),
    ];
    let commit = git.commit("templates.git", "main", "one", &files);
    let source = git.url("templates.git");
    fixture
        .create_helm(
            json!({"source": source, "path": "chart", "values": {"image": "mine"}, "session": "1"}),
        )
        .await;
    assert_eq!(fixture.progress().await, "False Running: written back");
    assert_eq!(fixture.image().await, "mine");
    fixture.again("2").await;
    assert_eq!(fixture.progress().await, "True Succeeded: no diff");
    let status = fixture.helm().get("shop-t").await.unwrap().status.unwrap();
    assert_eq!(status.digest, commit);
    // The workflow of the template is not taken over: the step would remove itself.
    let application = fixture.applications().get("shop").await.unwrap();
    assert_eq!(application.spec.workflow.unwrap().steps.len(), 2);

    // A commit that is pinned comes from the cache, and stays what it is when the branch moves.
    git.commit(
        "templates.git",
        "main",
        "two",
        &[(
            "chart/templates/app.yaml",
            Some(&TEMPLATE.replace("web", "other")),
        )],
    );
    let patch = Patch::Merge(json!({"spec": {"digest": commit, "session": "3"}}));
    fixture
        .helm()
        .patch("shop-t", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(fixture.progress().await, "True Succeeded: no diff");
}

#[tokio::test]
async fn a_template_that_never_settles_is_stopped() {
    let fixture = Fixture::new().await;
    let Some(git) = fixture.git() else { return };
    git.commit(
        "templates.git",
        "main",
        "one",
        &[
            ("Chart.yaml", Some(CHART)),
            ("templates/app.yaml", Some(RANDOM)),
        ],
    );
    fixture
        .create_helm(json!({"source": git.url("templates.git"), "session": "1"}))
        .await;
    assert_eq!(fixture.progress().await, "False Running: written back");
    let image = fixture.image().await;
    fixture.again("2").await;
    let progress = fixture.progress().await;
    assert!(
        progress.starts_with("False Failed: the template renders something else each time"),
        "{progress}"
    );
    assert_eq!(fixture.image().await, image);
}

#[tokio::test]
async fn a_base_is_patched() {
    let fixture = Fixture::new().await;
    let Some(git) = fixture.git() else { return };
    let files = [
        (
            "base/shop/kustomization.yaml",
            Some("resources: [../shared]\n"),
        ),
        (
            "base/shared/kustomization.yaml",
            Some("resources: [app.yaml]\n"),
        ),
        ("base/shared/app.yaml", Some(BASE)),
    ];
    git.commit("templates.git", "main", "one", &files);
    let patch =
        json!({"spec": {"components": [{"name": "instance", "properties": {"image": "prod"}}]}});
    let source = format!("file://{}", git.path("templates.git").display());
    let spec = json!({"source": source, "path": "base/shop", "patch": patch, "session": "1"});
    let object = serde_json::from_value(object("KustomizePatch", "k", spec)).unwrap();
    fixture
        .patches()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let progress = eventually(async || {
        let object = fixture.patches().get("shop-k").await.unwrap();
        progress_of(&serde_json::to_value(object).unwrap())
    })
    .await;
    assert_eq!(progress, "False Running: written back");
    let application = fixture.applications().get("shop").await.unwrap();
    let properties = application.spec.components[0].properties.clone().unwrap();
    assert_eq!(properties, json!({"image": "prod", "port": 80}));
}

#[tokio::test]
async fn what_is_wrong_is_reported() {
    let fixture = Fixture::new().await;
    let Some(git) = fixture.git() else { return };
    git.commit(
        "templates.git",
        "main",
        "one",
        &[
            ("Chart.yaml", Some(CHART)),
            (
                "templates/app.yaml",
                Some("kind: ConfigMap\napiVersion: v1\n"),
            ),
        ],
    );
    let url = git.url("templates.git");
    fixture
        .create_helm(json!({"source": "git-repo-url", "session": "1"}))
        .await;
    for (number, (change, why)) in [
        (json!({}), "is not the address of a repository"),
        (
            json!({"source": url, "revision": "none"}),
            "has no branch or tag \"none\"",
        ),
        (
            json!({"source": url, "revision": null, "path": "none"}),
            "there is no folder \"none\"",
        ),
        (json!({"source": url, "path": ""}), "renders no Application"),
        (
            json!({"source": "file:///etc"}),
            "the hub does not allow repositories at /etc",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut spec = change;
        spec["session"] = json!(format!("s{number}"));
        let patch = Patch::Merge(json!({"spec": spec}));
        fixture
            .helm()
            .patch("shop-t", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let progress = fixture.progress().await;
        assert!(
            progress.starts_with("False Failed: ") && progress.contains(why),
            "{why}: {progress}"
        );
    }
    // An object that no Application asked for writes nothing.
    let stranger = object("HelmTemplate", "other", json!({"source": url}));
    let stranger = serde_json::from_value(stranger).unwrap();
    fixture
        .helm()
        .create(&PostParams::default(), &stranger)
        .await
        .unwrap();
    let progress = eventually(async || {
        let object = fixture.helm().get("shop-other").await.unwrap();
        progress_of(&serde_json::to_value(object).unwrap())
    })
    .await;
    assert!(progress.contains("owns this object"), "{progress}");
}

#[tokio::test]
async fn charts_come_from_archives_registries_and_repositories() {
    let fixture = Fixture::new().await;
    let archive = archive(&[
        ("shop/Chart.yaml", CHART),
        ("shop/templates/app.yaml", TEMPLATE),
    ]);
    let digest = format!("sha256:{}", sha256(&archive));
    let manifest = json!({
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "sha256:0", "size": 0},
        "layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": digest, "size": archive.len()}],
    })
    .to_string()
    .into_bytes();
    let manifest_digest = format!("sha256:{}", sha256(&manifest));
    let index = format!(
        "entries:\n  shop:\n  - {{name: shop, version: 1.2.0, urls: [shop-1.tgz], digest: {}}}\n",
        sha256(&archive)
    );
    let address = serve(HashMap::from([
        ("/shop-1.tgz".to_owned(), archive.clone()),
        ("/v2/team/shop/manifests/1.0.0".to_owned(), manifest),
        (format!("/v2/team/shop/blobs/{digest}"), archive),
        ("/charts/index.yaml".to_owned(), index.into_bytes()),
        ("/charts/shop-1.tgz".to_owned(), Vec::new()),
    ]));
    let values = json!({"image": "mine"});
    fixture
        .create_helm(json!({"source": format!("http://{address}/shop-1.tgz"), "values": values, "session": "1"}))
        .await;
    assert_eq!(fixture.progress().await, "False Running: written back");
    let check = async |number: usize, spec: Value, expected: &str, digest: &str| {
        let mut spec = spec;
        spec["session"] = json!(format!("s{number}"));
        let patch = Patch::Merge(json!({"spec": spec}));
        fixture
            .helm()
            .patch("shop-t", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let progress = fixture.progress().await;
        assert!(progress.contains(expected), "{expected}: {progress}");
        let found = fixture
            .helm()
            .get("shop-t")
            .await
            .unwrap()
            .status
            .unwrap()
            .digest;
        assert_eq!(found, digest, "{progress}");
    };
    check(1, json!({"digest": digest}), "no diff", &digest).await;
    check(
        2,
        json!({"digest": "sha256:00"}),
        "but sha256:00 is wanted",
        "",
    )
    .await;
    let oci = format!("oci://{address}/team/shop");
    check(
        3,
        json!({"source": oci, "revision": "1.0.0", "digest": null}),
        "no diff",
        &manifest_digest,
    )
    .await;
    // What the index lists has to be what is there; the archive was cached by its digest.
    let repository = format!("http://{address}/charts");
    check(
        4,
        json!({"source": repository, "chart": "shop", "revision": "^1"}),
        "no diff",
        &digest,
    )
    .await;
    check(5, json!({"revision": "^2"}), "no version of shop", "").await;
}

/// A packed archive.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, content) in files {
        let mut header = [0_u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        let size = format!("{:011o}", content.len());
        header[124..135].copy_from_slice(size.as_bytes());
        header[156] = b'0';
        tar.extend_from_slice(&header);
        tar.extend_from_slice(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn sha256(content: &[u8]) -> String {
    use sha2::Digest as _;
    format!("{:x}", sha2::Sha256::digest(content))
}

/// Serves files on loopback until the test ends; returns the address.
pub(crate) fn serve(files: HashMap<String, Vec<u8>>) -> String {
    serve_to("", files)
}

/// The same, for requests with this authorization only; for all if it is empty.
pub(crate) fn serve_to(authorization: &'static str, files: HashMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok);
            let target = lines.next().unwrap_or_default();
            let target = target.split(' ').nth(1).unwrap_or_default().to_owned();
            let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let is_allowed = headers.iter().any(|line| {
                let header = line.split_once(": ");
                header.is_some_and(|(name, value)| {
                    name.eq_ignore_ascii_case("authorization") && value == authorization
                })
            });
            let (status, body) = match files.get(&target) {
                Some(_) if !is_allowed && !authorization.is_empty() => {
                    ("401 Unauthorized", &b""[..])
                }
                Some(body) => ("200 OK", body.as_slice()),
                None => ("404 Not Found", &b""[..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            // The client may be gone.
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(body));
        }
    });
    address
}
