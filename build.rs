//! The stencils of the project are part of the binary: a new one is seen by the next build.

fn main() {
    println!("cargo::rerun-if-changed=stencils");
    println!("cargo::rerun-if-changed=build.rs");
}
