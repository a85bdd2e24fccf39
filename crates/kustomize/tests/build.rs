//! Builds as users write them. Expected texts were printed by kustomize 5.8.2.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_kustomize::{Error, Options, Order, Tree, build, needs};

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: main
        image: reg.test/web:1.0
        ports: [{containerPort: 80}]
      - {name: side, image: busybox}
";

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: one}\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| (*path, *text)).collect()
}

#[track_caller]
fn builds(files: &[(&str, &str)], root: &str, expected: &str) {
    let built = build(&tree(files), root, Options::default());
    assert_eq!(built.map(|built| built.to_yaml()), Ok(expected.to_owned()));
}

#[track_caller]
fn fails(files: &[(&str, &str)], root: &str, expected: &str) {
    let error = build(&tree(files), root, Options::default()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_example_is_built_as_kustomize_builds_it() {
    let files = [
        (
            "base/kustomization.yaml",
            include_str!("../../../examples/kustomize/base/kustomization.yaml"),
        ),
        (
            "base/deployment.yaml",
            include_str!("../../../examples/kustomize/base/deployment.yaml"),
        ),
        (
            "base/service.yaml",
            include_str!("../../../examples/kustomize/base/service.yaml"),
        ),
        (
            "overlays/prod/kustomization.yaml",
            include_str!("../../../examples/kustomize/overlays/prod/kustomization.yaml"),
        ),
        (
            "overlays/prod/resources.yaml",
            include_str!("../../../examples/kustomize/overlays/prod/resources.yaml"),
        ),
    ];
    let expected = include_str!("../../../examples/kustomize/overlays/prod.expected.yaml");
    builds(&files, "overlays/prod", expected);
}

#[test]
fn items_of_a_patch_come_first_and_deletions_are_carried_out() {
    let kustomization = "\
resources: [d.yaml]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      template:
        spec:
          containers:
          - {name: new, image: n, env: [{name: A, value: null}, {name: B, $patch: delete}]}
          - {name: main, ports: [{containerPort: 90}, {containerPort: 80, name: http}]}
          - {name: side, $patch: delete}
";
    let expected = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - env:
        - name: A
        image: \"n\"
        name: new
      - image: reg.test/web:1.0
        name: main
        ports:
        - containerPort: 90
        - containerPort: 80
          name: http
";
    let files = [
        ("kustomization.yaml", kustomization),
        ("d.yaml", DEPLOYMENT),
    ];
    builds(&files, ".", expected);
}

#[test]
fn lists_of_applications_merge_only_if_asked() {
    let files = [
        (
            "kustomization.yaml",
            include_str!("../../../examples/kustomize/application/kustomization.yaml"),
        ),
        (
            "application.yaml",
            include_str!("../../../examples/kustomize/application/application.yaml"),
        ),
    ];
    let components = |merge_applications| {
        let options = Options {
            merge_applications,
            ..Options::default()
        };
        let built = build(&tree(&files), ".", options).unwrap();
        built.objects[0]["spec"]["components"].clone()
    };
    assert_eq!(components(false).as_array().map(Vec::len), Some(1));
    let merged = components(true);
    assert_eq!(
        merged[0]["properties"]["image"],
        "registry.example.com/shop:1.4"
    );
    assert_eq!(merged[0]["properties"]["port"], 80);
    assert_eq!(merged[0]["traits"][0]["properties"]["replicas"], 3);
    assert_eq!(merged[0]["traits"][1]["type"], "gateway");
    assert_eq!(merged[1]["name"], "worker");
}

#[test]
fn replacements_keep_the_type_of_their_target() {
    let kustomization = "\
resources: [c.yaml, s.yaml]
replacements:
- source: {kind: ConfigMap, name: settings, fieldPath: data.port}
  targets:
  - select: {kind: Service}
    fieldPaths: ['spec.ports.[name=http].port', 'metadata.annotations.[x.io/port]']
    options: {create: true}
";
    let files = [
        ("kustomization.yaml", kustomization),
        (
            "c.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {port: '81'}\n",
        ),
        (
            "s.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: http, port: 80}]}\n",
        ),
    ];
    let built = build(&tree(&files), ".", Options::default()).unwrap();
    let service = &built.objects[1];
    assert_eq!(service["spec"]["ports"][0]["port"], 81);
    assert_eq!(service["metadata"]["annotations"]["x.io/port"], "81");
}

#[test]
fn order_is_by_kind_unless_asked_otherwise() {
    let files = [
        ("kustomization.yaml", "resources: [d.yaml, c.yaml]\n"),
        ("d.yaml", DEPLOYMENT),
        ("c.yaml", CONFIG),
    ];
    let kinds = |order| {
        let options = Options {
            order,
            ..Options::default()
        };
        let built = build(&tree(&files), ".", options).unwrap();
        let kinds = built.objects.iter();
        kinds
            .map(|object| object["kind"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(Order::Legacy), ["ConfigMap", "Deployment"]);
    assert_eq!(kinds(Order::None), ["Deployment", "ConfigMap"]);
}

#[test]
fn errors_name_file_and_line() {
    fails(
        &[("kustomization.yaml", "namePrefix: a\nresuorces: []\n")],
        ".",
        "kustomization.yaml:2: unknown field \"resuorces\": remove it, or correct its name",
    );
    fails(
        &[
            ("k/kustomization.yaml", "resources: [a.yaml]\n"),
            ("k/a.yaml", "a: 1\nb: [\n"),
        ],
        "k",
        "k/a.yaml:2: this is not YAML: unclosed bracket '['",
    );
    fails(
        &[
            (
                "kustomization.yaml",
                "resources: [d.yaml]\npatches:\n- path: p.yaml\n",
            ),
            ("d.yaml", DEPLOYMENT),
            (
                "p.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n",
            ),
        ],
        ".",
        "kustomization.yaml:3: p.yaml: no resource matches strategic merge patch \
         Deployment.v1.apps/other.[noNs]: correct its kind, name or namespace, or give the patch a `target`",
    );
    fails(
        &[
            (
                "kustomization.yaml",
                "resources: [d.yaml]\npatches:\n- target: {kind: Deployment}\n  path: p.yaml\n",
            ),
            ("d.yaml", DEPLOYMENT),
            ("p.yaml", "[{op: remove, path: /spec}]\n"),
        ],
        ".",
        "kustomization.yaml:3: p.yaml: unable to parse SM or JSON patch: key must be a string at line 1 column \
         3: quote keys and texts, or write a YAML list",
    );
}

#[test]
fn errors_name_the_item_of_a_list() {
    let fails = |more: &str, expected: &str| {
        let kustomization = format!("resources:\n- d.yaml\n{more}");
        let files = [
            ("kustomization.yaml", kustomization.as_str()),
            ("d.yaml", DEPLOYMENT),
            ("p.yaml", "a: 1\nb: [\n"),
        ];
        fails(&files, ".", expected);
    };
    fails(
        "- none.yaml\n",
        "kustomization.yaml:3: 'none.yaml' is neither a file nor a directory",
    );
    fails(
        "replicas:\n- {name: web, count: 2}\n- {name: q, count: 2}\n",
        "kustomization.yaml:5: `replicas` names q, but nothing of that name is one of Deployment, \
         ReplicationController, ReplicaSet, StatefulSet",
    );
    fails(
        "configMapGenerator:\n- name: a\n- name: b\n  files: [none.txt]\n",
        "kustomization.yaml:5: the file 'none.txt' does not exist",
    );
    fails(
        "patches:\n- path: p.yaml\n",
        "kustomization.yaml:4: p.yaml:2: this is not YAML: unclosed bracket '['",
    );
    fails(
        "patches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: remove, path: /spec/none}\n",
        "kustomization.yaml:4: error in remove for path: '/spec/none': Unable to remove nonexistent key: \
         none: missing value: correct the patch of Deployment.v1.apps/web.[noNs]",
    );
}

#[test]
fn cycles_and_files_outside_are_refused() {
    fails(
        &[
            ("kustomization.yaml", "resources: [a]\n"),
            ("a/kustomization.yaml", "resources: [..]\n"),
        ],
        ".",
        "a/kustomization.yaml:1: cycle detected: '.' contains '.', which refers to it",
    );
    fails(
        &[
            ("k/kustomization.yaml", "resources: [../c.yaml]\n"),
            ("c.yaml", CONFIG),
        ],
        "k",
        "k/kustomization.yaml:1: security: the file 'c.yaml' is not in or below 'k'; move it there, or \
         make a base of its directory",
    );
}

#[test]
fn a_base_that_multiplies_is_refused() {
    // Each level lists the next eight times under another prefix: 8^6 directories.
    let mut files = vec![(
        "l6/kustomization.yaml".to_owned(),
        "resources: [c.yaml]\n".to_owned(),
    )];
    files.push(("l6/c.yaml".to_owned(), CONFIG.to_owned()));
    for level in 0..6 {
        let mut list = String::from("resources:\n");
        for copy in 0..8 {
            list.extend([format!("- ../p{level}x{copy}\n")]);
            let prefix = format!("resources: [../l{}]\nnamePrefix: a{copy}-\n", level + 1);
            files.push((format!("p{level}x{copy}/kustomization.yaml"), prefix));
        }
        files.push((format!("l{level}/kustomization.yaml"), list));
    }
    let tree: Tree = files.into_iter().collect();
    let error = build(&tree, "l0", Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("at most 4096 directories"), "{error}");
}

#[test]
fn what_is_missing_is_asked_for() {
    let mut files = tree(&[(
        "k/kustomization.yaml",
        "resources: [a.yaml, ../base, 'https://example.com/x?ref=v1']\nconfigMapGenerator: [{name: g, files: [q=f]}]\n",
    )]);
    let missing = needs(&files, "k");
    assert_eq!(missing.paths, ["base", "k/a.yaml", "k/f"]);
    assert_eq!(missing.remotes, ["https://example.com/x?ref=v1"]);
    files.add_file("k/a.yaml", CONFIG);
    files.add_file("k/f", "text");
    files.add_file(
        "base/kustomization.yaml",
        "resources: [c.yaml]\nnamePrefix: b-\n",
    );
    assert_eq!(needs(&files, "k").paths, ["base/c.yaml"]);
    files.add_file("base/c.yaml", CONFIG);
    let error = build(&files, "k", Options::default()).unwrap_err();
    assert!(matches!(error, Error::Needs(needs) if needs.remotes.len() == 1));
    files.add_file(
        "remote/kustomization.yaml",
        "resources: [c.yaml]\nnamePrefix: r-\n",
    );
    files.add_file("remote/c.yaml", CONFIG);
    files.add_remote_directory("https://example.com/x?ref=v1", "remote");
    assert!(needs(&files, "k").is_empty());
    assert_eq!(
        build(&files, "k", Options::default())
            .unwrap()
            .objects
            .len(),
        4
    );
}
