//! Programs of the rig that show or measure something.

use std::process::ExitCode;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// Works until the work is done or the program is told to stop. Whichever comes first, the work is dropped, and all that
/// it started ends with it.
///
/// # Errors
/// Where signals cannot be heard. What goes wrong with the work is told, and is the exit code 1.
pub async fn run(name: &str, work: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (end, code) = tokio::select! {
        done = work => match done {
            Ok(()) => return Ok(ExitCode::SUCCESS),
            Err(error) => (format!("the {name} failed: {error:#}"), 1),
        },
        _ = interrupt.recv() => ("interrupted".to_owned(), 130),
        _ = terminate.recv() => ("terminated".to_owned(), 143),
    };
    eprintln!("\n{end}\n(everything that the {name} started has ended)");
    Ok(ExitCode::from(code))
}
