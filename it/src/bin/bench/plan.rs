//! What can be measured: worlds, protocols and servers.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// How large a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct World {
    /// Services, a fifth of them TCP.
    pub services: usize,
    /// Streams, each with a connection and a pod of its own.
    pub streams: usize,
}

impl World {
    /// What is measured when nobody says it.
    pub const DEFAULT: Self = Self { services: 1_000, streams: 1_000 };
    /// As large in one direction, and in the other.
    pub const ALL: [Self; 3] = [
        Self::DEFAULT,
        Self { services: 5_000, streams: 500 },
        Self { services: 100, streams: 5_000 },
    ];
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} services x {} streams", self.services, self.streams)
    }
}

impl FromStr for World {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
        text.split_once('x')
            .and_then(|(services, streams)| {
                Some(Self { services: number(services)?, streams: number(streams)? })
            })
            .ok_or_else(|| format!("{text:?} is not of the form SERVICESxSTREAMS, as in 1000x200"))
    }
}

/// The protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Delta.
    Delta,
    /// State of the world.
    Sotw,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delta => "delta",
            Self::Sotw => "sotw",
        })
    }
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Server {
    /// Ours.
    Aether,
    /// Prepared bytes and no control plane; each change of a route sends the whole table.
    Floor,
    /// The same with virtual hosts as resources of their own.
    FloorVhds,
    /// go-control-plane, a snapshot for each node.
    Snapshot,
    /// go-control-plane, a linear cache for each type.
    Linear,
}

impl Server {
    /// Each of them, ours first.
    pub const ALL: [Self; 5] =
        [Self::Aether, Self::Floor, Self::FloorVhds, Self::Snapshot, Self::Linear];

    /// Whether it is another than the one before in this protocol: VHDS belongs to delta.
    pub fn speaks(self, mode: Mode) -> bool {
        self != Self::FloorVhds || mode == Mode::Delta
    }

    /// Whether it sends a virtual host that was added alone, and not the table it is in.
    pub fn sends_virtual_hosts(self, mode: Mode) -> bool {
        mode == Mode::Delta && matches!(self, Self::Aether | Self::FloorVhds)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Aether => "aether",
            Self::Floor => "floor",
            Self::FloorVhds => "floor+vhds",
            Self::Snapshot => "snapshot",
            Self::Linear => "linear",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_world_is_two_numbers_above_zero() {
        assert_eq!("100x5000".parse::<World>().unwrap(), World { services: 100, streams: 5_000 });
        for wrong in ["", "100", "x", "0x1", "1x0", "1x-1", "1x2x3", "a1x1"] {
            assert!(wrong.parse::<World>().unwrap_err().contains("SERVICESxSTREAMS"), "{wrong}");
        }
    }
}
