//! Tasks that must not end: where one panics, it begins anew.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tracing::error;

/// How long a task rests after it broke for the first time; each time that it breaks again doubles it.
const REST: Duration = Duration::from_secs(1);
/// How long it rests at most, and after how long a life it counts as well again.
const LONGEST: Duration = Duration::from_mins(1);

/// Keeps tasks alive, and counts how often each broke. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    broke: Family<[(&'static str, &'static str); 1], Counter>,
    rest: Duration,
    longest: Duration,
}

impl Default for Kept {
    fn default() -> Self {
        Self { broke: Family::default(), rest: REST, longest: LONGEST }
    }
}

impl Kept {
    /// Adds the family to a registry.
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "How often a task of the process panicked, which is a bug, and was begun anew";
        registry.register("tasks_broke", help, self.broke.clone());
    }

    /// Runs what `begin` makes until it ends, anew each time that it panics, after some rest. `say`
    /// hears each time what is amiss; the task itself says when it is well again.
    pub(super) async fn keep(
        self,
        task: &'static str,
        mut begin: impl FnMut() -> BoxFuture<'static, ()>,
        say: impl Fn(String),
    ) {
        let mut rest = self.rest;
        loop {
            let begun = Instant::now();
            // What it held is dropped; what it shares is made for several hands.
            let Err(panic) = AssertUnwindSafe(begin()).catch_unwind().await else { return };
            if begun.elapsed() > self.longest {
                rest = self.rest;
            }
            let words = words(panic.as_ref());
            error!(task, "a task broke, which is a bug to be reported, and begins anew: {words}");
            self.broke.get_or_create(&[("task", task)]).inc();
            say(format!("it broke, and begins anew within {rest:?}: {words}"));
            tokio::time::sleep(rest).await;
            rest = self.longest.min(rest * 2);
        }
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
    async fn what_breaks_is_said_counted_and_begun_anew() {
        let (rest, longest) = (Duration::from_millis(1), Duration::from_millis(200));
        let kept = Kept { rest, longest, ..Kept::default() };
        let part = Health::default().apart("a part");
        part.ready();
        let mut told = Vec::new();
        let begin = || {
            told.push(part.state());
            let (times, part) = (told.len(), part.clone());
            async move {
                match times {
                    1 => panic!("the first time"),
                    2 => panic!("{} time", "the second"),
                    3 => {
                        tokio::time::sleep(2 * longest).await;
                        panic!("the third time");
                    }
                    _ => part.ready(),
                }
            }
            .boxed()
        };
        kept.clone().keep("a task", begin, |words| part.waiting(words)).await;
        let waiting = |rest: &str, words: &str| {
            State::Waiting(format!("it broke, and begins anew within {rest}: {words} time"))
        };
        // After a long life the rest is a short one again.
        let said = [
            State::Ready,
            waiting("1ms", "the first"),
            waiting("2ms", "the second"),
            waiting("1ms", "the third"),
        ];
        assert_eq!(told, said);
        assert_eq!(part.state(), State::Ready);
        assert_eq!(kept.broke.get_or_create(&[("task", "a task")]).get(), 3);
    }
}
