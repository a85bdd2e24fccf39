//! An overlay with patches, as a hub builds it for each cluster.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use bellwether_kustomize::{Options, Tree, build};

fn main() {
    divan::main();
}

#[divan::bench]
fn overlay_with_patch(bencher: divan::Bencher<'_, '_>) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kustomize/");
    let files = [
        "base/kustomization.yaml",
        "base/deployment.yaml",
        "base/service.yaml",
        "overlays/prod/kustomization.yaml",
        "overlays/prod/resources.yaml",
    ];
    let tree: Tree = files
        .iter()
        .map(|path| (*path, std::fs::read(format!("{root}{path}")).unwrap()))
        .collect();
    bencher.bench(|| {
        build(&tree, "overlays/prod", Options::default())
            .unwrap()
            .to_yaml()
            .len()
    });
}
