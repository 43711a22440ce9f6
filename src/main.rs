//! aether.
fn main() {}
