//! Leader election: of all replicas, one writes.
//!
//! Every replica serves; what is written to the API server, one alone writes: the holder of a
//! Lease (`coordination.k8s.io/v1`). Whoever wants to write asks a [`Leadership`] for a [`Permit`]
//! and sends each request through [`Permit::write`], which refuses once the leadership is over.
//!
//! What makes it safe:
//!
//! - A holder leads until its last renewal that is known to have been stored, counted from the
//!   moment when that request was *sent*, is as old as the renew deadline. A candidate takes the
//!   Lease over when it has seen the very same record for the whole lease duration, which is longer,
//!   counted from the moment when it first *saw* it. No machine's clock is compared with another's:
//!   the times inside the Lease are for people.
//! - Time is `CLOCK_BOOTTIME`: it goes on while a process is stopped and while a machine sleeps.
//! - Every write of the Lease bears the resourceVersion that it replaces, so that of two writers
//!   one is refused. The writes of a leader ought to bear one too: it refuses what was sent in time
//!   and arrives too late.
//! - A process that is told to stop ends its writing first, and empties the Lease then; the
//!   candidates, who watch it, take over at once.
//!
//! [`Election`] decides, and knows no API server and no clock; [`Elector::elect`] acts.

mod clock;
mod election;
mod lease;
mod metrics;
mod permit;
mod record;
mod seeing;
mod settings;
mod task;
#[cfg(test)]
mod tests;

pub use clock::{Boot, Clock};
pub use election::Election;
pub use permit::{Leadership, NotWritten, Permit};
pub use record::{Answer, Record, Request, Step};
pub use settings::{Settings, WrongDurations};
pub use task::{Elector, identity};
