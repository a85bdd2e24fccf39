//! How fast texts become values: `cargo bench -p bellwether-json`.

fn main() {
    divan::main();
}
