//! Applications that need something from outside of the hub: charts, manifests at an address, answers of servers.
//! Time is real here: servers on loopback do not know of a clock that leaps.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails, and tables are written in place"
)]

use std::collections::HashMap;

use bellwether_api::oam::Application;
use bellwether_controllers::workflow::{HttpPolicy, WorkflowOptions};
use bellwether_controllers::{Hub, application, definition};
use bellwether_runtime::Clock;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::common::{START, World};
use crate::templates::{archive, eventually, serve, serve_to, sha256};

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.2.0\n";
const VALUES: &str = "colour: red\nsize: small\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-settings}\ndata:\n  colour: {{ .Values.colour }}\n  \
                        size: {{ .Values.size }}\n  password: {{ randAlphaNum 12 }}\n  namespace: {{ .Release.Namespace }}\n";
const SECOND: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-second}\n";
const HOOK: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {\"helm.sh/hook\": pre-install}}\n";

struct Bed {
    world: World,
    controllers: Vec<JoinHandle<()>>,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Bed {
    async fn start() -> Self {
        let world = World::with_clock(Clock::of_runtime(START.parse().unwrap())).await;
        let mut bed = Self {
            world,
            controllers: Vec::new(),
        };
        bed.run();
        bed
    }

    fn stop(&mut self) {
        for controller in self.controllers.drain(..) {
            controller.abort();
        }
    }

    fn run(&mut self) {
        let options = WorkflowOptions {
            http: HttpPolicy {
                allowed: vec!["loopback".parse().unwrap()],
            },
            ..WorkflowOptions::default()
        };
        let hub = Hub::new(self.world.client.clone(), self.world.clock.clone());
        self.controllers = vec![
            tokio::spawn(definition::run(hub.clone())),
            tokio::spawn(application::run(hub, options)),
        ];
    }

    fn applications(&self) -> Api<Application> {
        Api::namespaced(self.world.client.clone(), "default")
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.world.client.clone(), "default")
    }

    async fn create(&self, spec: Value) {
        let application = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "default"}, "spec": spec});
        let application = serde_json::from_value(application).unwrap();
        let parameters = PostParams::default();
        self.applications()
            .create(&parameters, &application)
            .await
            .unwrap();
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let parameters = PatchParams::default();
        self.applications()
            .patch("shop", &parameters, &patch)
            .await
            .unwrap();
    }

    /// Waits until the application runs as it is written.
    async fn running(&self) -> Value {
        eventually(async || {
            let found = self.applications().get("shop").await.unwrap();
            let found = serde_json::to_value(found).unwrap();
            let is_new = found["status"]["observedGeneration"] == found["metadata"]["generation"];
            if is_new && found["status"]["status"] == "running" {
                Ok(found)
            } else {
                Err(found["status"].to_string())
            }
        })
        .await
    }

    /// Waits until a condition has this text.
    async fn problem(&self, text: &str) -> Value {
        eventually(async || {
            let found = self.applications().get("shop").await.unwrap();
            let status = serde_json::to_value(found.status).unwrap();
            if status["conditions"].to_string().contains(text) {
                Ok(status)
            } else {
                Err(status.to_string())
            }
        })
        .await
    }

    async fn data(&self, name: &str) -> Value {
        let map = self.maps().get(name).await.unwrap();
        serde_json::to_value(map.data).unwrap()
    }
}

/// Serves a Helm repository with a chart of these templates.
fn repository(templates: &[(&str, &str)]) -> String {
    format!("http://{}", serve(repository_files(templates)))
}

fn repository_files(templates: &[(&str, &str)]) -> HashMap<String, Vec<u8>> {
    let mut files = vec![("shop/Chart.yaml", CHART), ("shop/values.yaml", VALUES)];
    files.extend(templates);
    let archive = archive(&files);
    let index = format!(
        "entries:\n  shop:\n  - {{name: shop, version: 1.2.0, urls: [shop.tgz], digest: {}}}\n",
        sha256(&archive)
    );
    HashMap::from([
        ("/index.yaml".to_owned(), index.into_bytes()),
        ("/shop.tgz".to_owned(), archive),
    ])
}

fn chart(repository: &str, properties: Value) -> Value {
    let mut properties = properties;
    properties["chart"] = json!({"source": "shop", "repoURL": repository, "version": "^1"});
    json!({"name": "web", "type": "helmchart", "properties": properties})
}

#[tokio::test]
async fn a_chart_is_delivered_with_its_values() {
    let mut bed = Bed::start().await;
    let repository = repository(&[
        ("shop/templates/a.yaml", TEMPLATE),
        ("shop/templates/b.yaml", SECOND),
    ]);
    let values = json!({"metadata": {"name": "values"}, "data": {"values.yaml": "colour: blue\nsize: large\n"}});
    bed.maps()
        .create(
            &PostParams::default(),
            &serde_json::from_value(values).unwrap(),
        )
        .await
        .unwrap();
    let from = json!([{"kind": "ConfigMap", "name": "values"}, {"kind": "Secret", "name": "none", "optional": true}]);
    let component = chart(
        &repository,
        json!({"values": {"colour": "green"}, "valuesFrom": from, "release": {"name": "rel"}}),
    );
    bed.create(json!({"components": [component]})).await;
    let app = bed.running().await;
    assert_eq!(app["status"]["services"][0]["message"], "Deployed");
    let first = bed.data("rel-settings").await;
    assert_eq!(first["colour"], "green");
    assert_eq!(first["size"], "large");
    assert_eq!(first["namespace"], "default");
    let password = first["password"].as_str().unwrap();
    assert_eq!(password.len(), 12);
    let second = bed.maps().get("rel-second").await.unwrap();
    let labels = second.metadata.labels.unwrap();
    assert_eq!(labels["trait.oam.dev/type"], "AuxiliaryWorkload");
    // The revision says which chart it was.
    let revisions: Api<bellwether_api::oam::ApplicationRevision> =
        Api::namespaced(bed.world.client.clone(), "default");
    let revision = revisions.get("shop-v1").await.unwrap();
    let record = &revision.spec.referred_objects[0];
    assert!(
        record["spec"]["digest"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    // Another process keeps what was applied, random values too.
    bed.stop();
    bed.run();
    bed.maps()
        .patch(
            "rel-settings",
            &PatchParams::default(),
            &Patch::Merge(json!({"data": {"colour": "grey"}})),
        )
        .await
        .unwrap();
    eventually(async || {
        let data = bed.data("rel-settings").await;
        if data["colour"] == "green" {
            Ok(())
        } else {
            Err(data.to_string())
        }
    })
    .await;
    assert_eq!(bed.data("rel-settings").await["password"], password);
    // What an override gives the chart is rendered too.
    let policies = json!([{"name": "blue", "type": "override", "properties": {"components": [
        {"name": "web", "properties": {"values": {"colour": "blue"}}}]}}]);
    bed.change(json!({"policies": policies})).await;
    bed.running().await;
    assert_eq!(bed.data("rel-settings").await["colour"], "blue");
}

#[tokio::test]
async fn a_chart_is_fetched_with_the_credentials_of_a_secret() {
    let bed = Bed::start().await;
    let files = repository_files(&[("shop/templates/a.yaml", TEMPLATE)]);
    // ada:lovelace
    let repository = format!("http://{}", serve_to("Basic YWRhOmxvdmVsYWNl", files));
    let with = |secret: Value| {
        let chart = json!({"source": "shop", "repoURL": repository, "auth": {"secretRef": secret}});
        json!({"components": [{"name": "web", "type": "helmchart", "properties": {"chart": chart}}]})
    };
    bed.create(with(json!({"name": "login"}))).await;
    bed.problem("the Secret default/login with its credentials does not exist")
        .await;
    let secrets: Api<Secret> = Api::namespaced(bed.world.client.clone(), "default");
    let secret = |password: &str| -> Secret {
        let secret = json!({"metadata": {"name": password}, "stringData": {"username": "ada", "password": password}});
        serde_json::from_value(secret).unwrap()
    };
    for password in ["wrong", "lovelace"] {
        let parameters = PostParams::default();
        secrets
            .create(&parameters, &secret(password))
            .await
            .unwrap();
    }
    bed.change(with(json!({"name": "wrong"}))).await;
    bed.problem("401").await;
    bed.change(with(json!({"name": "lovelace"}))).await;
    bed.running().await;
    assert_eq!(bed.data("web-settings").await["colour"], "red");
    bed.change(with(
        json!({"name": "lovelace", "namespace": "kube-system"}),
    ))
    .await;
    bed.problem("only Secrets of the application's namespace default are read")
        .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_chart_is_named() {
    let bed = Bed::start().await;
    let with_hook = repository(&[
        ("shop/templates/a.yaml", TEMPLATE),
        ("shop/templates/hook.yaml", HOOK),
    ]);
    let wrong = json!({"chart": {"source": "ship", "repoURL": with_hook}});
    bed.create(json!({"components": [{"name": "web", "type": "helmchart", "properties": wrong}]}))
        .await;
    let status = bed
        .problem("component web: chart ship (latest) of http://")
        .await;
    assert_eq!(status["status"], "rendering");
    bed.change(json!({"components": [chart(&with_hook, json!({}))]}))
        .await;
    bed.problem("set parameter.options.skipHooks to true").await;
    let options = json!({"options": {"postRender": {"x": 1}}});
    bed.change(json!({"components": [chart(&with_hook, options)]}))
        .await;
    bed.problem("parameter.options.postRender: this option is not supported")
        .await;
    let options = json!({"options": {"skipHooks": true}});
    bed.change(json!({"components": [chart(&with_hook, options)]}))
        .await;
    bed.running().await;
    let secret =
        json!({"valuesFrom": [{"kind": "Secret", "name": "none"}], "options": {"skipHooks": true}});
    bed.change(json!({"components": [chart(&with_hook, secret)]}))
        .await;
    bed.problem("valuesFrom: Secret none does not exist").await;
    let secret = json!({"metadata": {"name": "none"}, "stringData": {"values.yaml": "size: huge"}});
    let secrets: Api<Secret> = Api::namespaced(bed.world.client.clone(), "default");
    let secret: Secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    bed.change(json!({"policies": [{"name": "gc", "type": "garbage-collect", "properties": {"applicationRevisionLimit": 3}}]}))
        .await;
    bed.running().await;
    assert_eq!(bed.data("web-settings").await["size"], "huge");
}

#[tokio::test]
async fn objects_are_copied_from_addresses() {
    let bed = Bed::start().await;
    let manifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: \
                     {name: two, uid: x, resourceVersion: \"1\"}\n";
    let address = serve(HashMap::from([(
        "/all.yaml".to_owned(),
        manifests.as_bytes().to_vec(),
    )]));
    let url = format!("http://{address}/all.yaml");
    let component =
        |url: &str| json!({"name": "copies", "type": "ref-objects", "properties": {"urls": [url]}});
    bed.create(json!({"components": [component(&url)]})).await;
    bed.running().await;
    let one = bed.maps().get("one").await.unwrap();
    assert_eq!(
        one.metadata.annotations.unwrap()["app.oam.dev/resource-url"],
        url
    );
    assert!(bed.maps().get_opt("two").await.unwrap().is_some());
    let missing = format!("http://{address}/none.yaml");
    bed.change(json!({"components": [component(&missing)]}))
        .await;
    let status = bed.problem(&format!("there is nothing at {missing}")).await;
    assert!(
        status["conditions"]
            .to_string()
            .contains("component copies")
    );
    bed.change(json!({"components": [component("http://192.0.2.1/x")]}))
        .await;
    bed.problem("the hub does not allow requests to 192.0.2.1")
        .await;
}

#[tokio::test]
async fn a_trait_can_ask_a_server() {
    let bed = Bed::start().await;
    let address = serve(HashMap::from([
        ("/token/web".to_owned(), br#"{"token": "t-1"}"#.to_vec()),
        ("/token/bad".to_owned(), b"no JSON".to_vec()),
    ]));
    let template = format!(
        "parameter: {{path: string}}\nprocessing: {{\n\toutput: {{token?: string}}\n\thttp: {{\n\t\tmethod: \"GET\"\n\t\turl: \"http://{address}/token/\\(parameter.path)\"\n\t\trequest: header: Accept: \"application/json\"\n\t}}\n}}\npatch: data: token: processing.output.token\n"
    );
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "TraitDefinition", "metadata": {"name": "token", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template": template}}}});
    let definitions: Api<bellwether_api::oam::TraitDefinition> =
        Api::namespaced(bed.world.client.clone(), "default");
    definitions
        .create(
            &PostParams::default(),
            &serde_json::from_value(definition).unwrap(),
        )
        .await
        .unwrap();
    let component = |path: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {}});
        json!({"name": "web", "type": "k8s-objects", "properties": {"objects": [map]},
            "traits": [{"type": "token", "properties": {"path": path}}]})
    };
    bed.create(json!({"components": [component("web")]})).await;
    bed.running().await;
    assert_eq!(bed.data("web").await["token"], "t-1");
    bed.change(json!({"components": [component("bad")]})).await;
    bed.problem("trait token of component web: processing.http: GET http://")
        .await;
    bed.problem("the answer is not JSON").await;
}
