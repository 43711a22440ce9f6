//! How Envoy proves who it is, and whom it takes for us.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use envoy_types::pb::envoy::config::core::v3::{
    ApiVersion, ConfigSource, PathConfigSource, TransportSocket,
    config_source::ConfigSourceSpecifier, transport_socket::ConfigType,
};
use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, CommonTlsContext, SdsSecretConfig, SubjectAltNameMatcher,
    TlsParameters, UpstreamTlsContext, common_tls_context as context,
    subject_alt_name_matcher::SanType, tls_parameters::TlsProtocol,
};
use envoy_types::pb::envoy::r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern};
use envoy_types::pb::google::protobuf::Any;
use prost::Message;
use serde_json::{Value, json};
use spiffe::SpiffeId;

use super::utf8;
use crate::cli::WrongOptions;
use crate::cli::values::Host;

/// The name of Envoy's TLS, and the type of its configuration.
const TLS: &str = "envoy.transport_sockets.tls";
const UPSTREAM: &str = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";

/// The names of the secrets, which are those of their files too.
const CERTIFICATE: &str = "xds_certificate";
const AUTHORITIES: &str = "xds_authorities";

/// TLS to the server. The fields are called as the options are.
#[allow(clippy::struct_field_names)]
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS to the server")]
pub struct ClientTls {
    /// Certificate that Envoy presents, PEM: the identity of its pod. Envoy follows it as it is
    /// replaced in its folder.
    #[arg(long, env = "AETHER_XDS_CLIENT_CERT", value_name = "FILE")]
    xds_client_cert: Option<PathBuf>,

    /// Its private key, PEM, in the same folder.
    #[arg(long, env = "AETHER_XDS_CLIENT_KEY", value_name = "FILE")]
    xds_client_key: Option<PathBuf>,

    /// Authorities that may have signed the server's certificate, PEM.
    #[arg(long, env = "AETHER_XDS_SERVER_CA", value_name = "FILE")]
    xds_server_ca: Option<PathBuf>,

    /// SPIFFE ID that the server must have [default: it must have the name or address of
    /// --xds-address].
    #[arg(long, env = "AETHER_XDS_SERVER_ID", value_name = "ID", value_parser = spiffe_id)]
    xds_server_id: Option<String>,

    /// Folder, from / on, into which the two files are written by which Envoy follows those above
    /// (xds_certificate.json and xds_authorities.json); it has to find them there.
    #[arg(long, env = "AETHER_XDS_SECRETS_FOLDER", value_name = "DIR")]
    xds_secrets_folder: Option<PathBuf>,
}

/// TLS that was asked for, checked.
#[derive(Debug, Clone)]
pub(super) struct Secured {
    certificate: PathBuf,
    key: PathBuf,
    authorities: PathBuf,
    server_id: Option<String>,
    folder: PathBuf,
}

impl ClientTls {
    /// What was asked for; `None`: plain text.
    pub(super) fn options(&self) -> Result<Option<Secured>> {
        let all = (
            &self.xds_client_cert,
            &self.xds_client_key,
            &self.xds_server_ca,
            &self.xds_secrets_folder,
        );
        let secured = match all {
            (None, None, None, None) if self.xds_server_id.is_none() => return Ok(None),
            (Some(certificate), Some(key), Some(authorities), Some(folder)) => Secured {
                certificate: certificate.clone(),
                key: key.clone(),
                authorities: authorities.clone(),
                server_id: self.xds_server_id.clone(),
                folder: folder.clone(),
            },
            _ => bail!(WrongOptions(
                "--xds-client-cert, --xds-client-key, --xds-server-ca and --xds-secrets-folder go together: give all four, or none for plain TCP"
            )),
        };
        let paths = [&secured.certificate, &secured.key, &secured.authorities, &secured.folder];
        if paths.iter().any(|path| path.is_relative()) {
            bail!(WrongOptions(
                "a file of TLS or --xds-secrets-folder is a relative path, and Envoy runs in a folder of its own: write it from / on"
            ));
        }
        if secured.certificate.parent() != secured.key.parent() {
            bail!(WrongOptions(
                "--xds-client-cert and --xds-client-key are in different folders, of which Envoy watches one: put them into one"
            ));
        }
        Ok(Some(secured))
    }
}

impl Secured {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// The files by which Envoy follows certificate and authorities.
    fn files(&self) -> Result<[(PathBuf, Value); 2]> {
        let filename = |path: &Path| Ok::<_, anyhow::Error>(json!({"filename": utf8(path)?}));
        let folder = |path: &Path| {
            let folder = utf8(path.parent().unwrap_or_else(|| Path::new("/")))?;
            Ok::<_, anyhow::Error>(json!({"path": folder}))
        };
        let secret = |name: &str, field: &str, value: Value| {
            let kind = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
            json!({"resources": [{"@type": kind, "name": name, field: value}]})
        };
        let certificate = json!({
            "certificate_chain": filename(&self.certificate)?,
            "private_key": filename(&self.key)?,
            "watched_directory": folder(&self.certificate)?,
        });
        let authorities = json!({
            "trusted_ca": filename(&self.authorities)?,
            "watched_directory": folder(&self.authorities)?,
        });
        Ok([
            (self.file(CERTIFICATE), secret(CERTIFICATE, "tls_certificate", certificate)),
            (self.file(AUTHORITIES), secret(AUTHORITIES, "validation_context", authorities)),
        ])
    }

    /// Writes these files.
    pub(super) fn write(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("--xds-secrets-folder {}", self.folder.display()))?;
        for (path, value) in self.files()? {
            std::fs::write(&path, format!("{value:#}\n"))
                .with_context(|| format!("--xds-secrets-folder: {}", path.display()))?;
        }
        Ok(())
    }

    /// The transport socket to a server at this host.
    pub(super) fn socket(&self, host: &Host) -> Result<TransportSocket> {
        let (san, name) = match (&self.server_id, host) {
            (Some(id), _) => (SanType::Uri, id.clone()),
            (None, Host::Ip(ip)) => (SanType::IpAddress, ip.to_string()),
            (None, Host::Name(name)) => {
                (SanType::Dns, name.strip_suffix('.').unwrap_or(name).to_owned())
            }
        };
        let matcher =
            StringMatcher { match_pattern: Some(MatchPattern::Exact(name)), ignore_case: false };
        let expected = CertificateValidationContext {
            match_typed_subject_alt_names: vec![SubjectAltNameMatcher {
                san_type: san.into(),
                matcher: Some(matcher),
                ..SubjectAltNameMatcher::default()
            }],
            ..CertificateValidationContext::default()
        };
        let combined = context::CombinedCertificateValidationContext {
            default_validation_context: Some(expected),
            validation_context_sds_secret_config: Some(self.secret(AUTHORITIES)?),
            ..context::CombinedCertificateValidationContext::default()
        };
        // Of its own Envoy asks for TLS 1.2 at most.
        let params = TlsParameters {
            tls_minimum_protocol_version: TlsProtocol::TlSv12.into(),
            tls_maximum_protocol_version: TlsProtocol::TlSv13.into(),
            ..TlsParameters::default()
        };
        let common = CommonTlsContext {
            tls_params: Some(params),
            tls_certificate_sds_secret_configs: vec![self.secret(CERTIFICATE)?],
            alpn_protocols: vec!["h2".to_owned()],
            validation_context_type: Some(
                context::ValidationContextType::CombinedValidationContext(combined),
            ),
            ..CommonTlsContext::default()
        };
        let sni = match host {
            Host::Ip(_) => String::new(),
            Host::Name(name) => name.strip_suffix('.').unwrap_or(name).to_owned(),
        };
        let tls = UpstreamTlsContext {
            common_tls_context: Some(common),
            sni,
            ..UpstreamTlsContext::default()
        };
        let type_url = format!("type.googleapis.com/{UPSTREAM}");
        let config = Any { type_url, value: tls.encode_to_vec() };
        Ok(TransportSocket {
            name: TLS.to_owned(),
            config_type: Some(ConfigType::TypedConfig(config)),
        })
    }

    fn secret(&self, name: &str) -> Result<SdsSecretConfig> {
        let path =
            PathConfigSource { path: utf8(&self.file(name))?, ..PathConfigSource::default() };
        let source = ConfigSource {
            resource_api_version: ApiVersion::V3.into(),
            config_source_specifier: Some(ConfigSourceSpecifier::PathConfigSource(path)),
            ..ConfigSource::default()
        };
        Ok(SdsSecretConfig { name: name.to_owned(), sds_config: Some(source) })
    }
}

fn spiffe_id(text: &str) -> Result<String, String> {
    let id = SpiffeId::new(text)
        .map_err(|error| format!("no SPIFFE ID: {error}; write spiffe://<trust domain>/<path>"))?;
    Ok(id.to_string())
}
