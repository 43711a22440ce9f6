//! The configuration files of SPIRE's server and agent.

use std::net::SocketAddr;
use std::path::Path;

use super::TRUST_DOMAIN;

/// The server's, whose files are in `server/` of this folder.
pub(super) fn server(folder: &Path, address: SocketAddr) -> String {
    let (folder, ip, port) = (folder.display(), address.ip(), address.port());
    format!(
        r#"server {{
    bind_address = "{ip}"
    bind_port = "{port}"
    socket_path = "{folder}/server/api.sock"
    trust_domain = "{TRUST_DOMAIN}"
    data_dir = "{folder}/server"
    log_level = "INFO"
    experimental {{
        cache_reload_interval = "500ms"
    }}
}}
plugins {{
    DataStore "sql" {{
        plugin_data {{
            database_type = "sqlite3"
            connection_string = "{folder}/server/datastore.sqlite3"
        }}
    }}
    NodeAttestor "join_token" {{
        plugin_data {{}}
    }}
    KeyManager "memory" {{
        plugin_data {{}}
    }}
}}
"#
    )
}

/// The agent's, whose files are in `agent/` of this folder, but for the socket of the Workload API.
pub(super) fn agent(folder: &Path, server: SocketAddr, socket: &Path) -> String {
    let (folder, ip, port) = (folder.display(), server.ip(), server.port());
    let socket = socket.display();
    format!(
        r#"agent {{
    data_dir = "{folder}/agent"
    server_address = "{ip}"
    server_port = "{port}"
    socket_path = "{socket}"
    trust_bundle_path = "{folder}/agent/bundle.pem"
    trust_domain = "{TRUST_DOMAIN}"
    log_level = "INFO"
    experimental {{
        sync_interval = "500ms"
    }}
}}
plugins {{
    NodeAttestor "join_token" {{
        plugin_data {{}}
    }}
    KeyManager "memory" {{
        plugin_data {{}}
    }}
    WorkloadAttestor "unix" {{
        plugin_data {{}}
    }}
}}
"#
    )
}
