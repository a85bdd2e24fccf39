//! The commands on an embedded cluster: what they do, and what they print.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use std::time::Duration;

use bellwether_ctl::apply::Apply;
use bellwether_ctl::delete::{Cascade, Delete};
use bellwether_ctl::get::Get;
use bellwether_ctl::wait::Wait;
use bellwether_ctl::{
    Connection, DryRun, Error, Manifest, Scope, apply, delete, describe, get, wait,
};
use bellwether_runtime::Clock;
use bellwether_testkit::Embedded;
use serde_json::{Value, json};

async fn cluster() -> Connection {
    Connection {
        client: Embedded::start(Clock::system()).await.hub(),
        namespace: "default".to_owned(),
    }
}

fn scope() -> Scope {
    Scope {
        namespace: "default".to_owned(),
        ..Scope::default()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

async fn applied(connection: &Connection, how: &Apply, objects: Value) -> Result<String, Error> {
    let Value::Array(objects) = objects else {
        panic!("a list of objects")
    };
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let manifests = objects.into_iter().map(|object| Manifest {
        place: "m.yaml".to_owned(),
        object,
    });
    let result = apply::run(connection, how, manifests.collect(), &mut out, &mut notes).await;
    let printed = String::from_utf8([out, notes].concat()).unwrap();
    result
        .map(|()| printed.clone())
        .map_err(|error| match error {
            Error::Several { .. } => Error::Usage(format!("{printed}{error}")),
            other => other,
        })
}

async fn shown(connection: &Connection, objects: &str, output: &str) -> Result<String, Error> {
    let what = Get {
        words: words(objects),
        scope: scope(),
        output: output.parse().unwrap(),
        show_labels: false,
        label_columns: Vec::new(),
        no_headers: false,
        sort_by: None,
        watch: false,
        watch_only: false,
        ignore_not_found: false,
    };
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    get::run(connection, &what, &mut out, &mut notes).await?;
    Ok(String::from_utf8([out, notes].concat()).unwrap())
}

async fn deleted(connection: &Connection, objects: &str) -> Result<String, Error> {
    let what = Delete {
        words: words(objects),
        objects: Vec::new(),
        scope: scope(),
        all: false,
        cascade: Cascade::Background,
        grace_period: None,
        wait: Some(Duration::from_secs(10)),
        ignore_not_found: false,
        force: false,
        dry_run: DryRun::None,
        names: false,
    };
    let mut out = Vec::new();
    delete::run(connection, &what, &mut out, &mut Vec::new()).await?;
    Ok(String::from_utf8(out).unwrap())
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn an_apply_creates_configures_and_leaves_alone() {
    let connection = cluster().await;
    let how = Apply::default();
    let first = json!([map("m", json!({"a": "1", "b": "2"}))]);
    let run = async |objects: Value| applied(&connection, &how, objects).await.unwrap();
    assert_eq!(run(first.clone()).await, "configmap/m created\n");
    assert_eq!(run(first).await, "configmap/m unchanged\n");
    let second = json!([map("m", json!({"a": "3"}))]);
    assert_eq!(run(second).await, "configmap/m configured\n");
    let data = shown(&connection, "cm m", "jsonpath={.data}")
        .await
        .unwrap();
    assert_eq!(data, r#"{"a":"3"}"#, "what is left out is removed");
    let by_server = Apply {
        server_side: true,
        ..Apply::default()
    };
    let third = json!([map("m", json!({"a": "4"}))]);
    let conflict = applied(&connection, &by_server, third.clone()).await;
    assert!(
        conflict.is_ok(),
        "its own fields are no conflict: {conflict:?}"
    );
}

#[tokio::test]
async fn a_failure_does_not_stop_the_rest_and_kinds_can_be_defined_on_the_way() {
    let connection = cluster().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let bad = map("Bad Name", json!({}));
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    let how = Apply::default();
    let objects = json!([bad, definition, widget, unknown]);
    let error = applied(&connection, &how, objects)
        .await
        .unwrap_err()
        .to_string();
    for expected in [
        "customresourcedefinition.apiextensions.k8s.io/widgets.example.com created\n",
        "widget.example.com/w created\n",
        "ConfigMap \"Bad Name\" is invalid",
        "no matches for kind \"Gadget\" in version \"example.com/v1\"",
        "2 of 4 failed",
    ] {
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[tokio::test]
async fn objects_are_shown_in_the_forms_that_people_know() {
    let connection = cluster().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let objects = json!([
        map("one", json!({"a": "1"})),
        map("two", json!({})),
        namespace
    ]);
    applied(&connection, &Apply::default(), objects)
        .await
        .unwrap();
    let show =
        async |objects: &str, output: &str| shown(&connection, objects, output).await.unwrap();
    let table = show("configmap/one configmap/two", "table").await;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines[0], "NAME   DATA   AGE");
    assert!(lines[1].starts_with("one    1      "), "{table}");
    let names = show("ns/other cm/one", "name").await;
    assert_eq!(names, "namespace/other\nconfigmap/one\n");
    let columns = show("cm one", "custom-columns=N:.metadata.name,X:.nothing").await;
    assert_eq!(columns, "N     X\none   <none>\n");
    let several = show("ns/other cm/one", "table").await;
    assert!(
        several.contains("namespace/other ") && several.contains("\n\nNAME "),
        "{several}"
    );
    assert!(
        show("cm one", "yaml")
            .await
            .starts_with("apiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\n")
    );
    assert_eq!(
        show("secrets", "table").await,
        "No resources found in default namespace.\n"
    );
    let list = show("cm", "json").await;
    assert!(list.contains("\"kind\": \"List\"") && !list.contains("managedFields"));
    let missing = shown(&connection, "cm three", "table").await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "Error from server (NotFound): configmaps \"three\" not found"
    );
    let mixed = shown(&connection, "cm/one two", "table").await.unwrap_err();
    assert_eq!(
        mixed.to_string(),
        "\"two\": where one argument is TYPE/NAME, all have to be"
    );
    let mut page = Vec::new();
    let now = Clock::system().now();
    describe::run(
        &connection,
        &words("cm one"),
        &scope(),
        now,
        &mut page,
        &mut Vec::new(),
    )
    .await
    .unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(
        page.starts_with("Name:         one\nNamespace:    default\n"),
        "{page}"
    );
    assert!(page.contains("\nData\n====\na:\n----\n1\n"), "{page}");
    assert!(page.ends_with("\nEvents:  <none>\n"), "{page}");
}

#[tokio::test]
async fn what_is_deleted_is_gone_when_the_command_ends() {
    let connection = cluster().await;
    let objects = json!([map("one", json!({})), map("two", json!({}))]);
    applied(&connection, &Apply::default(), objects)
        .await
        .unwrap();
    let run = async |objects: &str| deleted(&connection, objects).await;
    assert_eq!(run("cm one").await.unwrap(), "configmap \"one\" deleted\n");
    assert!(
        shown(&connection, "cm one", "name")
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert!(run("cm one").await.unwrap_err().is_not_found());
    let unnamed = run("cm").await.unwrap_err().to_string();
    assert!(
        unnamed.starts_with("resource(s) were provided, but no name"),
        "{unnamed}"
    );
    assert_eq!(
        shown(&connection, "cm two", "name").await.unwrap(),
        "configmap/two\n"
    );
}

#[tokio::test]
async fn a_wait_ends_when_the_goal_is_met_or_the_time_is_over() {
    let connection = cluster().await;
    let wait_for = async |goal: &str, milliseconds: u64| {
        let what = Wait {
            words: words("cm/m"),
            scope: scope(),
            all: false,
            goal: goal.parse().unwrap(),
            timeout: Duration::from_millis(milliseconds),
        };
        let mut out = Vec::new();
        wait::run(&connection, &what, &mut out).await?;
        Ok::<_, Error>(String::from_utf8(out).unwrap())
    };
    let create = async {
        let objects = json!([map("m", json!({"a": "1"}))]);
        applied(&connection, &Apply::default(), objects).await
    };
    let (there, created) = tokio::join!(wait_for("create", 20_000), create);
    created.unwrap();
    assert_eq!(there.unwrap(), "configmap/m condition met\n");
    assert!(wait_for("jsonpath={.data.a}=1", 20_000).await.is_ok());
    let late = wait_for("jsonpath={.data.a}=2", 1).await.unwrap_err();
    assert_eq!(
        late.to_string(),
        "timed out waiting for the condition on configmaps/m"
    );
    let absent = wait_for("condition=Ready", 1).await.unwrap_err();
    assert!(matches!(absent, Error::TimedOut(_)));
}

#[tokio::test]
async fn a_deletion_does_not_wait_for_what_is_created_again() {
    let connection = cluster().await;
    let how = Apply::default();
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
        "finalizers": ["example.com/hold"]}});
    applied(&connection, &how, json!([held])).await.unwrap();
    let maps: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(
        connection.client.clone(),
        "default",
        &kube::discovery::ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
        },
    );
    // Somebody lets it go, and has another one at once.
    let replaced = async {
        while maps
            .get("m")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
        {
            tokio::task::yield_now().await;
        }
        let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
        maps.patch("m", &kube::api::PatchParams::default(), &free)
            .await
            .unwrap();
        applied(&connection, &how, json!([map("m", json!({"new": "yes"}))]))
            .await
            .unwrap();
    };
    let (told, ()) = tokio::join!(deleted(&connection, "cm m"), replaced);
    assert_eq!(told.unwrap(), "configmap \"m\" deleted\n");
    let data = shown(&connection, "cm m", "jsonpath={.data}").await;
    assert_eq!(data.unwrap(), r#"{"new":"yes"}"#);
}

#[tokio::test]
async fn a_hub_without_the_work_api_shows_works() {
    use bellwether_ctl::explain::{NoMembers, Source, explainer};

    let connection = cluster().await;
    let definitions = bellwether_api::definitions();
    let own = definitions.filter(|it| it["spec"]["group"] == "work.open-cluster-management.io");
    let how = Apply::default();
    applied(&connection, &how, own.collect()).await.unwrap();
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "web"}, "spec": {"workload": {"manifests": [map("m", json!({}))]}}});
    applied(&connection, &how, json!([work])).await.unwrap();
    let source = Source {
        client: &connection.client,
        namespace: "default",
        members: &NoMembers,
        now: Clock::system().now(),
    };
    let read = explainer("work").unwrap().read;
    let snapshot = read(source, "web").await.unwrap();
    let text = snapshot.status()[0].render(false);
    assert_eq!(
        text,
        "ManifestWork web on default, generation 1\n├─ the agent has not reported yet\n└─ 1 manifest has no status yet\n"
    );
    let missing = read(source, "wbe").await.unwrap_err().to_string();
    assert!(
        missing.starts_with("there is no work wbe in namespace default; did you mean web?"),
        "{missing}"
    );
}
