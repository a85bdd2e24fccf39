//! Applications and definitions on the command line, with the examples of the documentation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::templates::bellwether;

#[test]
fn the_example_is_rendered_for_both_namespaces() {
    let (succeeded, output, errors) = bellwether(
        "render -f examples/application/shop.yaml -d examples/application/definitions -o json",
    );
    assert!(succeeded, "{errors}");
    let list: Value = serde_json::from_str(&output).unwrap();
    let objects: Vec<String> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &object["metadata"];
            format!(
                "{} {}/{} {}",
                text(&object["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"]),
                object["spec"]["replicas"],
            )
        })
        .collect();
    assert_eq!(
        objects,
        [
            "ConfigMap default/insight null",
            "Deployment stage/web 1",
            "Service stage/web null",
            "Deployment production/web 3",
            "Service production/web null",
        ],
    );
    let deployment = &list["items"][1];
    assert_eq!(
        deployment["metadata"]["annotations"]["example.org/greeting"],
        "welcome"
    );
    assert_eq!(list["items"][0]["data"]["frequency"], "enabled");
}

#[test]
fn a_missing_parameter_is_named_with_its_component() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("app.yaml");
    std::fs::write(
        &file,
        "kind: Application\nmetadata: {name: a}\nspec: {components: [{name: web, type: webservice}]}\n",
    )
    .unwrap();
    let (succeeded, _, errors) = bellwether(&format!("render -f {}", file.display()));
    assert!(!succeeded);
    for part in ["application a", "component web", "parameter.image"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}

#[test]
fn what_an_application_needs_is_fetched_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let address = serve("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched}\n");
    let write = |name: &str, url: &str| {
        let file = directory.path().join(name);
        let text = format!(
            "kind: Application\nmetadata: {{name: a}}\nspec: {{components: [{{name: copies, type: ref-objects, properties: {{urls: [\"{url}\"]}}}}]}}\n"
        );
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let url = format!("http://{address}/all.yaml");
    let file = write("app.yaml", &url);
    let (succeeded, output, errors) = bellwether(&format!("render -f {file} -o json"));
    assert!(succeeded, "{errors}");
    let list: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(list["items"][0]["metadata"]["name"], "fetched");
    assert!(
        errors.contains(&format!("fetching manifests at {url}")),
        "{errors}"
    );
    let (succeeded, _, errors) = bellwether(&format!("render -f {file} --offline"));
    assert!(!succeeded);
    for part in ["application a", "component copies", &url, "fetched offline"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    // Nobody listens there.
    let file = write("gone.yaml", "http://127.0.0.1:1/all.yaml");
    let (succeeded, output, errors) = bellwether(&format!("render -f {file}"));
    assert!(!succeeded && output.is_empty());
    for part in ["component copies", "http://127.0.0.1:1/all.yaml", "refused"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}

/// Serves a text to every request, and returns where.
fn serve(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            // The client may be gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn definitions_of_the_example_are_right_and_documented() {
    let folder = "examples/application/definitions";
    let (succeeded, _, errors) = bellwether(&format!(
        "def vet {folder}/greeting.cue {folder}/insight.cue"
    ));
    assert!(succeeded, "{errors}");
    let (_, output, _) = bellwether(&format!("def show {folder}/greeting.cue"));
    assert!(output.contains("What it says"), "{output}");
}

#[test]
fn a_broken_definition_is_refused_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broken.cue");
    std::fs::write(&file, "x: {type: \"trait\", attributes: {}}\ntemplate: {\n\tpatch: nowhere.y\n\tparameter: {}\n}\n").unwrap();
    let (succeeded, _, errors) = bellwether(&format!("def vet {}", file.display()));
    assert!(!succeeded);
    assert!(
        errors.contains("broken.cue") && errors.contains("nowhere"),
        "{errors}"
    );
}

#[test]
fn built_in_definitions_are_listed_and_printed() {
    let (succeeded, output, errors) = bellwether("def list --type component");
    assert!(succeeded, "{errors}");
    assert!(
        output.contains("webservice") && !output.contains("gateway"),
        "{output}"
    );
    let (_, output, _) = bellwether("definitions -o json");
    let list: Value = serde_json::from_str(&output).unwrap();
    let count = list["items"].as_array().unwrap().len();
    assert!(count >= 50, "{count}");
}
