//! Charts as users write them. Expected texts were printed by Helm 3.22.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_helm::{
    Chart, NoCluster, Release, Request, Templated, ValueSources, lint, template,
};
use bellwether_template::{NOWHERE, World};

/// The files of the example, which is also what the documentation shows.
const SHOP: [(&str, &str); 10] = [
    (
        "Chart.yaml",
        include_str!("../../../../examples/helm/shop/Chart.yaml"),
    ),
    (
        "values.yaml",
        include_str!("../../../../examples/helm/shop/values.yaml"),
    ),
    (
        "values.schema.json",
        include_str!("../../../../examples/helm/shop/values.schema.json"),
    ),
    (
        "config/limits.toml",
        include_str!("../../../../examples/helm/shop/config/limits.toml"),
    ),
    (
        "templates/_helpers.tpl",
        include_str!("../../../../examples/helm/shop/templates/_helpers.tpl"),
    ),
    (
        "templates/configmap.yaml",
        include_str!("../../../../examples/helm/shop/templates/configmap.yaml"),
    ),
    (
        "templates/deployment.yaml",
        include_str!("../../../../examples/helm/shop/templates/deployment.yaml"),
    ),
    (
        "templates/service.yaml",
        include_str!("../../../../examples/helm/shop/templates/service.yaml"),
    ),
    (
        "templates/NOTES.txt",
        include_str!("../../../../examples/helm/shop/templates/NOTES.txt"),
    ),
    (
        "templates/tests/ping.yaml",
        include_str!("../../../../examples/helm/shop/templates/tests/ping.yaml"),
    ),
];

const VALUES: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v}\ndata:\n  v: {{ .Values | toJson | printf \"%q\" }}\n";

fn world() -> World<'static> {
    World {
        facts: &NoCluster,
        ..NOWHERE
    }
}

fn rendered(files: &[(&str, &str)], sources: &ValueSources) -> Result<Release, String> {
    let request = Request::default();
    let chart = Chart::from_directory(files.iter().copied()).map_err(|error| error.to_string())?;
    let values = sources.merge().map_err(|error| error.to_string())?;
    match template(&chart, &values, &request, &world()) {
        Ok(Templated::Release(release)) => Ok(*release),
        Ok(Templated::Needs(queries)) => Err(format!("{queries:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn fails(files: &[(&str, &str)], sources: &ValueSources, expected: &str) {
    assert_eq!(rendered(files, sources).unwrap_err(), expected);
}

fn set(text: &str) -> ValueSources {
    ValueSources {
        set: vec![text.to_owned()],
        ..ValueSources::default()
    }
}

#[test]
fn the_example_is_rendered_as_helm_renders_it() {
    let release = rendered(&SHOP, &set("replicas=3")).unwrap();
    let expected = include_str!("../../../../examples/helm/shop.expected.yaml");
    assert_eq!(release.to_text(&Request::default()).unwrap(), expected);
    assert_eq!(release.notes, "release-name-shop listens on port 80.\n");
    assert_eq!(release.hooks[0].delete_policies, ["hook-succeeded"]);
}

#[test]
fn values_that_violate_the_schema_are_refused() {
    fails(
        &SHOP,
        &set("service.port=http"),
        "values don't meet the specifications of the schema(s) in the following chart(s):\nshop:\n- at \
         '/service/port': got string, want integer",
    );
}

#[test]
fn subcharts_get_their_values_globals_and_aliases() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies:\n- {name: kid, version: '>=1', alias: \
             first}\n- {name: kid, version: 1.0.0, condition: kid.enabled}\n",
        ),
        (
            "values.yaml",
            "global: {region: eu}\nfirst: {color: blue, gone: null}\nkid: {enabled: false}\n",
        ),
        (
            "charts/kid/Chart.yaml",
            "apiVersion: v2\nname: kid\nversion: 1.0.0\n",
        ),
        ("charts/kid/values.yaml", "color: red\ngone: 1\n"),
        ("charts/kid/templates/v.yaml", VALUES),
    ];
    let release = rendered(&files, &ValueSources::default()).unwrap();
    assert_eq!(release.manifests.len(), 1);
    assert_eq!(
        release.manifests[0].path,
        "app/charts/first/templates/v.yaml"
    );
    let values = r#"{\"color\":\"blue\",\"global\":{\"region\":\"eu\"}}"#;
    assert!(
        release.manifests[0].content.contains(values),
        "{:?}",
        release.manifests[0]
    );
}

#[test]
fn errors_name_the_template_and_the_line() {
    let chart = ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n");
    fails(
        &[
            chart,
            (
                "templates/a.yaml",
                "a: 1\nb: {{ required \"b must be set\" .Values.b }}\n",
            ),
        ],
        &ValueSources::default(),
        "execution error at (app/templates/a.yaml:2:6): b must be set",
    );
    fails(
        &[chart, ("templates/a.yaml", "{{ if }}")],
        &ValueSources::default(),
        "parse error at (app/templates/a.yaml:1): missing value for if",
    );
    fails(
        &[chart, ("templates/a.yaml", "- a\n")],
        &ValueSources::default(),
        "YAML parse error on app/templates/a.yaml: error unmarshaling JSON: while decoding JSON: json: \
         cannot unmarshal array into Go value of type releaseutil.SimpleHead",
    );
    fails(
        &[("Chart.yaml", "apiVersion: v2\nname: app\n")],
        &ValueSources::default(),
        "validation: chart.metadata.version is required",
    );
}

#[test]
fn what_is_looked_up_is_asked_for() {
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        (
            "templates/a.yaml",
            "{{ lookup \"v1\" \"Secret\" \"ns\" \"name\" | toJson }}",
        ),
    ];
    let chart = Chart::from_directory(files).unwrap();
    let result = template(
        &chart,
        &serde_json::Map::new(),
        &Request::default(),
        &NOWHERE,
    )
    .unwrap();
    let Templated::Needs(queries) = result else {
        panic!("nothing was asked for");
    };
    assert_eq!(queries[0].function, "lookup");
    assert_eq!(queries[0].arguments.len(), 4);
}

#[test]
fn a_chart_that_calls_itself_ends_with_an_error() {
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        (
            "templates/a.yaml",
            "{{ define \"a\" }}{{ include \"a\" . }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        ),
    ];
    let error = rendered(&files, &ValueSources::default()).unwrap_err();
    assert!(
        error.contains("nested reference name: a") || error.contains("limit"),
        "{error}"
    );
}

#[test]
fn lint_reports_what_is_wrong() {
    let chart = Chart::from_directory(SHOP).unwrap();
    let request = Request::default();
    assert_eq!(
        lint(&chart, &serde_json::Map::new(), &request, &world()),
        []
    );
    let values = set("image=x").merge().unwrap();
    let findings = lint(&chart, &values, &request, &world());
    let text = findings[0].to_string();
    assert!(
        text.starts_with("[ERROR] values.yaml: values don't meet"),
        "{text}"
    );
}

#[test]
fn lint_names_the_template_that_is_wrong() {
    let check = |template: &str, expected: &str| {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
            ("values.yaml", "a: 1\n"),
            ("templates/a.yaml", template),
        ];
        let chart = Chart::from_directory(files).unwrap();
        let found = lint(
            &chart,
            &serde_json::Map::new(),
            &Request::default(),
            &world(),
        );
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.join("\n").starts_with(expected), "{found:?}");
    };
    check("kind: A\nmetadata: {name: a}\n", "");
    check(
        "{{ .Values.x.y }}",
        "[ERROR] templates/a.yaml: template: app/templates/a.yaml:1:",
    );
    check(
        "{{ if }}",
        "[ERROR] templates/a.yaml: parse error at (app/templates/a.yaml:1)",
    );
    check(
        "a: b: c\n",
        "[ERROR] templates/a.yaml: YAML parse error on app/templates/a.yaml",
    );
    check(
        "kind: ConfigMap\nmetadata: {name: Bad_Name}\n",
        "[WARNING] templates/a.yaml: object name does not conform to Kubernetes naming requirements: \"Bad_Name\"",
    );
    check(
        "kind: Deployment\nmetadata: {name: a}\nspec: {selector: {}}\n",
        "[ERROR] templates/a.yaml: a Deployment must contain matchLabels or matchExpressions, and \"a\" does not",
    );
}

/// The text of a template in a chart of its own.
fn one(text: &str) -> String {
    let template = format!("apiVersion: v1\nkind: A\nt: |-\n  {text}\n");
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: a\nversion: 1.0.0\nmaintainers: [{name: m, email: e}]\n",
        ),
        ("values.yaml", "a: 1\n---\na: 2\n"),
        ("x/f.txt", "hi"),
        ("templates/t.yaml", &template),
    ];
    let release = rendered(&files, &ValueSources::default()).unwrap();
    let manifest = &release.manifests[0].content;
    manifest.split_once("t: |-\n  ").unwrap().1.to_owned()
}

#[test]
fn files_are_a_map_and_structs_print_as_in_go() {
    assert_eq!(
        one("{{ len .Files }} {{ .Files }}"),
        "1 map[x/f.txt:[104 105]]"
    );
    assert_eq!(one("{{ .Files.Nope }}{{ if .Files }}yes{{ end }}"), "[]yes");
    assert_eq!(
        one("{{ range $k, $v := .Files }}{{ $k }}={{ $v | toString }}{{ end }}"),
        "x/f.txt=hi"
    );
    assert_eq!(one("{{ index .Files \"x/f.txt\" | toJson }}"), "\"aGk=\"");
    assert_eq!(
        one("{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion | toString }}"),
        "v1.35.0 {v1.35.0 1 35}"
    );
    assert_eq!(
        one("{{ printf \"%T\" .Chart.Maintainers }}"),
        "[]*chart.Maintainer"
    );
    assert_eq!(
        one("{{ range .Chart.Maintainers }}{{ . }}{{ end }}"),
        "{m e }"
    );
}

#[test]
fn only_the_first_document_of_values_counts() {
    assert_eq!(one("{{ .Values.a }}"), "1");
    assert_eq!(one("{{ fromYaml \"a: 1\\n---\\nb: 2\" }}"), "map[a:1]");
}
