//! Apply-once, played with kubectl in each of its modes.

use std::process::Command;

use crate::fleet::{self, Fleet};

/// What people write.
const EXAMPLE: &str = "
apiVersion: core.oam.dev/v1alpha2
kind: ApplicationConfiguration
metadata:
  name: example-appconfig
spec:
  components:
    - componentName: example-component
---
apiVersion: core.oam.dev/v1alpha2
kind: Component
metadata:
  name: example-component
spec:
  workload:
    apiVersion: apps/v1
    kind: Deployment
    spec:
      selector:
        matchLabels: {app: sample-app}
      template:
        metadata:
          labels: {app: sample-app}
        spec:
          containers:
            - image: sample/app:1.0
              name: sample-app
";

/// How somebody else changes the workload.
const PATCH: &str = "
spec:
  template:
    spec:
      containers:
      - name: sample-app
        image: sample/app:2.0
";

const IMAGE: &str = "{.spec.template.spec.containers[0].image}";

/// A fleet in a mode, with what people write applied.
struct Stage(Fleet);

impl Stage {
    fn new(arguments: &[&str]) -> Self {
        let stage = Self(Fleet::start_with(arguments));
        stage.apply(EXAMPLE);
        stage.until("deployment example-component", IMAGE, "sample/app:1.0");
        stage.until(
            "appconfig example-appconfig",
            "{.status.conditions[0].status}",
            "True",
        );
        stage
    }

    /// Runs kubectl with these arguments.
    fn kubectl(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.0.kubeconfig())
            .env("HOME", self.0.scratch())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text + &errors)
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let (succeeded, output) = self.kubectl(arguments);
        assert!(succeeded, "{arguments:?}: {output}");
        output
    }

    fn apply(&self, text: &str) {
        let file = self.0.scratch().join("applied.yaml");
        std::fs::write(&file, text).unwrap();
        self.done(&["apply", "-f", &file.display().to_string()]);
    }

    fn get(&self, object: &str, field: &str) -> Option<String> {
        let mut arguments = vec!["get"];
        arguments.extend(object.split(' '));
        let output = format!("jsonpath={field}");
        arguments.extend(["-o", &output]);
        let (succeeded, text) = self.kubectl(&arguments);
        succeeded.then_some(text)
    }

    #[track_caller]
    fn until(&self, object: &str, field: &str, expected: &str) {
        for _ in 0..100 {
            if self.get(object, field).as_deref() == Some(expected) {
                return;
            }
            fleet::pause();
        }
        assert_eq!(
            self.get(object, field).as_deref(),
            Some(expected),
            "{object} {field}"
        );
    }

    /// Waits until the hub has had its chance, and checks that a workload is as others left it.
    #[track_caller]
    fn stays(&self, expected: Option<&str>) {
        for _ in 0..10 {
            let found = self.get("deployment example-component", IMAGE);
            assert_eq!(found.as_deref(), expected);
            fleet::pause();
        }
    }

    fn patch_by_others(&self) {
        self.done(&["patch", "deployment", "example-component", "--patch", PATCH]);
    }

    fn delete_by_others(&self) {
        self.done(&["delete", "deployment", "example-component"]);
    }

    /// A new revision of the component.
    fn new_revision(&self) {
        self.apply(&EXAMPLE.replace("sample/app:1.0", "sample/app:3.0"));
    }

    /// A new generation of the ApplicationConfiguration.
    fn new_generation(&self) {
        let patch = "[{op: add, path: /spec/components/0/traits, value: [{trait: {apiVersion: v1, kind: ConfigMap}}]}]";
        self.done(&[
            "patch",
            "appconfig",
            "example-appconfig",
            "--type=json",
            "--patch",
            patch,
        ]);
        let observed = "{.status.observedGeneration}";
        self.until("appconfig example-appconfig", observed, "2");
    }
}

#[test]
fn off_changes_the_workload_back() {
    let stage = Stage::new(&[]);
    stage.patch_by_others();
    stage.until("deployment example-component", IMAGE, "sample/app:1.0");
    stage.delete_by_others();
    stage.until("deployment example-component", IMAGE, "sample/app:1.0");
    stage.new_revision();
    stage.until("deployment example-component", IMAGE, "sample/app:3.0");
}

#[test]
fn on_leaves_the_workload_until_something_is_changed_here() {
    let stage = Stage::new(&["--apply-once-only=on"]);
    let metadata = |field: &str| {
        let field = format!(
            "{{.metadata.{}}}",
            field.replace("app.oam.dev", "app\\.oam\\.dev")
        );
        stage.get("deployment example-component", &field).unwrap()
    };
    assert_eq!(metadata("annotations.app.oam.dev/generation"), "1");
    assert_eq!(
        metadata("labels.app.oam.dev/component"),
        "example-component"
    );
    assert_eq!(metadata("labels.app.oam.dev/name"), "example-appconfig");
    assert_eq!(metadata("labels.app.oam.dev/resourceType"), "WORKLOAD");
    assert_eq!(
        metadata("labels.app.oam.dev/revision"),
        "example-component-v1"
    );
    stage.patch_by_others();
    stage.stays(Some("sample/app:2.0"));
    stage.new_generation();
    stage.until("deployment example-component", IMAGE, "sample/app:1.0");
    assert_eq!(metadata("annotations.app.oam.dev/generation"), "2");
    stage.patch_by_others();
    stage.stays(Some("sample/app:2.0"));
    stage.new_revision();
    stage.until("deployment example-component", IMAGE, "sample/app:3.0");
    assert_eq!(
        metadata("labels.app.oam.dev/revision"),
        "example-component-v2"
    );
    stage.delete_by_others();
    stage.until("deployment example-component", IMAGE, "sample/app:3.0");
}

#[test]
fn force_does_not_create_again_what_was_deleted() {
    let stage = Stage::new(&["--apply-one-only=force"]);
    stage.patch_by_others();
    stage.stays(Some("sample/app:2.0"));
    stage.delete_by_others();
    stage.stays(None);
    // A new generation brings no workload back, a new revision does.
    stage.new_generation();
    stage.stays(None);
    stage.new_revision();
    stage.until("deployment example-component", IMAGE, "sample/app:3.0");
}

#[test]
fn a_restart_changes_nothing_and_another_mode_is_taken_up() {
    let mut stage = Stage::new(&["--apply-once-only=force"]);
    stage.delete_by_others();
    stage.stays(None);
    stage.0.kill_and_restart();
    stage.stays(None);
    stage.0.set_arguments(&["--apply-once-only=off"]);
    stage.0.kill_and_restart();
    stage.until("deployment example-component", IMAGE, "sample/app:1.0");
}

#[test]
fn deleting_the_configuration_deletes_its_objects() {
    let stage = Stage::new(&["--apply-once-only=on"]);
    stage.done(&["delete", "appconfig", "example-appconfig"]);
    for _ in 0..100 {
        if stage.get("deployment example-component", IMAGE).is_none() {
            return;
        }
        fleet::pause();
    }
    panic!("the deployment is still there");
}
