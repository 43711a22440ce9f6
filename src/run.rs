//! The one place that wires the parts together.

mod once;

pub use once::{Once, once};

use crate::cli::serve::Options;

/// PLACEHOLDER of the cli branch: dropped at the merge.
#[expect(clippy::unused_async)]
pub async fn serve(options: Options) -> anyhow::Result<()> {
    anyhow::bail!("not there yet: {options:?}")
}
