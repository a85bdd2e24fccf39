//! How long rendering takes: `cargo xtask bench app`.

use bellwether_api::oam::Application;
use bellwether_application::appfile;
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::world::World;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

#[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
fn application(traits: Value) -> Application {
    let component = json!({
        "name": "web",
        "type": "webservice",
        "properties": {
            "image": "nginx:1.27",
            "ports": [{"port": 80, "expose": true}],
            "env": [{"name": "MODE", "value": "production"}],
            "cpu": "500m",
            "memory": "256Mi",
        },
        "traits": traits,
    });
    let application = json!({"metadata": {"name": "shop"}, "spec": {"components": [component]}});
    serde_json::from_value(application).unwrap_or_default()
}

fn measure(bencher: divan::Bencher<'_, '_>, traits: Value) {
    let (catalog, world) = (Catalog::default(), World::default());
    let application = application(traits);
    bencher.bench_local(|| {
        let appfile =
            appfile::parse(&application, &catalog, &world, 1).map_err(|error| error.message)?;
        deliver(&appfile).map_err(|error| error.message)
    });
}

#[divan::bench]
fn webservice(bencher: divan::Bencher<'_, '_>) {
    measure(bencher, json!([]));
}

#[divan::bench]
fn webservice_with_scaler(bencher: divan::Bencher<'_, '_>) {
    measure(
        bencher,
        json!([{"type": "scaler", "properties": {"replicas": 2}}]),
    );
}

#[divan::bench]
fn webservice_with_two_traits(bencher: divan::Bencher<'_, '_>) {
    measure(
        bencher,
        json!([
            {"type": "scaler", "properties": {"replicas": 2}},
            {"type": "gateway", "properties": {"domain": "shop.example.org", "http": {"/": 80}}},
        ]),
    );
}
