//! Speed of compiling and evaluating the rule that tells whether a job is complete.
fn main() {
    divan::main();
}
