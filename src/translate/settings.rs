//! What shapes the translation besides the projection.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::model::MeshNames;

/// Which connections of a pod are redirected to its proxy (`--capture-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CaptureMode {
    /// All TCP but what is excluded; what is no mesh service passes through.
    #[default]
    RedirectAll,
    /// TCP to the mesh Service port (18081) alone.
    Scoped,
}

/// A word that names no capture mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no capture mode: write redirect-all or scoped")]
pub struct CaptureModeError(String);

impl FromStr for CaptureMode {
    type Err = CaptureModeError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "redirect-all" => Ok(Self::RedirectAll),
            "scoped" => Ok(Self::Scoped),
            other => Err(CaptureModeError(other.to_owned())),
        }
    }
}

impl fmt::Display for CaptureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RedirectAll => "redirect-all",
            Self::Scoped => "scoped",
        })
    }
}

/// The DNS listener of each pod (`--dns-filter`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DnsFilter {
    /// Where names that the mesh does not know are asked (`--dns-upstream`). Empty: they are
    /// NXDOMAIN.
    pub upstream: Vec<SocketAddr>,
}

/// The options that shape the resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The mesh domain and the cluster domain.
    pub names: MeshNames,
    /// What is redirected.
    pub mode: CaptureMode,
    /// Destination ports that are not inspected, since the server speaks first there.
    pub server_first_ports: Vec<u16>,
    /// The DNS listener; `None` (the default) for none.
    pub dns: Option<DnsFilter>,
}

/// The default of `--server-first-ports`.
pub const SERVER_FIRST_PORTS: [u16; 14] =
    [21, 22, 25, 110, 119, 143, 389, 514, 587, 2003, 3306, 4222, 5900, 9418];

impl Default for Settings {
    fn default() -> Self {
        Self {
            names: MeshNames::default(),
            mode: CaptureMode::default(),
            server_first_ports: SERVER_FIRST_PORTS.to_vec(),
            dns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in [CaptureMode::RedirectAll, CaptureMode::Scoped] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for wrong in ["", "Scoped", "redirect_all", "all"] {
            assert!(wrong.parse::<CaptureMode>().is_err(), "{wrong}");
        }
    }
}
