//! Has addresses that are only known when the program starts written in their short form, where the
//! C library of this machine can read it: a megabyte and a half less in memory for every agent.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is how a build script hears and speaks"
)]

use std::env;
use std::process::Command;

/// The first C library that reads them.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if is_for_this_machine() && c_library().is_some_and(|version| version >= FIRST) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Another machine has a C library that cannot be asked.
fn is_for_this_machine() -> bool {
    env::var("TARGET") == env::var("HOST")
        && env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
}

/// The version of the C library, from a line such as `glibc 2.36`.
fn c_library() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let line = String::from_utf8(answer.ok()?.stdout).ok()?;
    let (major, minor) = line.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
