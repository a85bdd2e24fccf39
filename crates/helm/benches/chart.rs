//! A chart of several hundred lines, as a hub renders it: loaded before, rendered often.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use bellwether_helm::{Chart, NoCluster, Request, Templated, template};
use bellwether_template::{NOWHERE, World};
use serde_json::{Map, Value};

fn main() {
    divan::main();
}

/// The templates of the example, under seven names: 329 lines of manifests.
fn chart() -> Chart {
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/helm/shop/");
    let read = |path: &str| std::fs::read_to_string(format!("{shop}{path}")).unwrap();
    let mut files = vec![
        ("Chart.yaml".to_owned(), read("Chart.yaml")),
        ("values.yaml".to_owned(), read("values.yaml")),
        ("values.schema.json".to_owned(), read("values.schema.json")),
        ("config/limits.toml".to_owned(), read("config/limits.toml")),
        (
            "templates/_helpers.tpl".to_owned(),
            read("templates/_helpers.tpl"),
        ),
    ];
    for copy in 0..7 {
        for name in ["configmap", "deployment", "service"] {
            let text = read(&format!("templates/{name}.yaml"));
            files.push((format!("templates/{name}-{copy}.yaml"), text));
        }
    }
    Chart::from_directory(files).unwrap()
}

fn render(chart: &Chart) -> usize {
    let world = World {
        facts: &NoCluster,
        ..NOWHERE
    };
    let request = Request::default();
    let values: Map<String, Value> = Map::new();
    match template(chart, &values, &request, &world).unwrap() {
        Templated::Release(release) => release.to_text(&request).unwrap().len(),
        Templated::Needs(_) => 0,
    }
}

#[divan::bench]
fn load_and_render(bencher: divan::Bencher<'_, '_>) {
    bencher.bench(|| render(&chart()));
}

#[divan::bench]
fn render_only(bencher: divan::Bencher<'_, '_>) {
    let chart = chart();
    bencher.bench(|| render(&chart));
}
