//! A task that must not end: where it panics it begins anew.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::error;

use crate::health::Part;

/// Runs what `begin` makes until it ends, anew each time that it panics, after some `rest`. `part`
/// says so meanwhile, and is the task's own again then.
pub(super) async fn kept(
    mut begin: impl FnMut() -> BoxFuture<'static, ()>,
    rest: Duration,
    part: &Part,
) {
    // What it held is dropped; what it shares is made for several hands.
    while let Err(panic) = AssertUnwindSafe(begin()).catch_unwind().await {
        let words = words(panic.as_ref());
        error!("a part broke, which is a bug to be reported, and begins anew: {words}");
        part.waiting(format!("it broke, and begins anew within {rest:?}: {words}"));
        tokio::time::sleep(rest).await;
    }
}

/// What a panic says.
pub(super) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it does not say why".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::*;
    use crate::health::{Health, State};

    #[tokio::test]
    async fn what_breaks_is_said_and_begins_anew() {
        let health = Health::default();
        let part = health.apart("a part");
        part.ready();
        let mut told = Vec::new();
        let begin = || {
            told.push(part.state());
            let (times, part) = (told.len(), part.clone());
            async move {
                match times {
                    1 => panic!("the first time"),
                    2 => panic!("{} time", "the second"),
                    _ => part.ready(),
                }
            }
            .boxed()
        };
        kept(begin, Duration::from_millis(1), &part).await;
        let waiting = |words: &str| {
            State::Waiting(format!("it broke, and begins anew within 1ms: {words} time"))
        };
        assert_eq!(told, [State::Ready, waiting("the first"), waiting("the second")]);
        assert_eq!(part.state(), State::Ready);
    }
}
