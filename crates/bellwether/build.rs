//! Links the program at a fixed address where the platform allows it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var_os(format!("CARGO_CFG_TARGET_{name}"));
    // A program that can be loaded anywhere has 100,000 addresses to adjust at every start: 2 MB of tables are read and 1.4 MB of
    // constants become memory of each process. Kubernetes' own programs are linked like this. Stack, heap and libraries are still
    // placed at random.
    if target("OS").is_some_and(|it| it == "linux") && target("ENV").is_some_and(|it| it == "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
