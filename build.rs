//! Nothing is generated yet.
fn main() {}
