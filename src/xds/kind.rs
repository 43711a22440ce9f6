//! The resource types that are served, in the order in which they are sent.

/// A resource type. The order is that of sending: what is named comes before what names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// CDS.
    Cluster,
    /// EDS.
    Endpoints,
    /// LDS.
    Listener,
    /// RDS.
    Routes,
    /// VHDS, on delta streams alone.
    VirtualHost,
}

impl Kind {
    /// All of them, in the order of sending.
    pub const ALL: [Self; 5] =
        [Self::Cluster, Self::Endpoints, Self::Listener, Self::Routes, Self::VirtualHost];

    /// The type URL, as in every request, response and `Any`.
    pub fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Routes => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::VirtualHost => "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        }
    }

    /// How the protocol abbreviates it, for metrics and logs.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::Cluster => "CDS",
            Self::Endpoints => "EDS",
            Self::Listener => "LDS",
            Self::Routes => "RDS",
            Self::VirtualHost => "VHDS",
        }
    }

    /// The type of a URL; `None` for one that is not served.
    pub fn from_type_url(url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_url() == url)
    }

    /// Whether a subscription that never named a resource is a wildcard (statement 12).
    pub fn wildcard_by_default(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener | Self::VirtualHost)
    }

    /// Whether a state-of-the-world response holds everything that is subscribed, so that absence
    /// deletes (statement 10).
    pub fn whole_state(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }
}
