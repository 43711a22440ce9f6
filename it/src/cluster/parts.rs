//! How each program of a cluster is called.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use super::options::Options;
use crate::places;
use crate::process::Spec;

/// Where ClusterIPs come from.
const SERVICES: &str = "10.96.0.0/16";
/// The same where Services may have IPv6 addresses as well.
const SERVICES_OF_BOTH: &str = "10.96.0.0/16,fd00:10:96::/112";

/// The files of a cluster, all in one folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a>(pub(super) &'a Path);

impl Files<'_> {
    /// A file of this name.
    pub(super) fn path(self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// A program with its log beside the other files.
    fn spec(self, program: &str, args: Vec<String>) -> Result<Spec> {
        let log = self.0.join(format!("{program}.log"));
        let mut spec = Spec::new(&places::tool(program)?, args, &log);
        // Nothing of the user's own Kubernetes counts here.
        spec.env = vec![("HOME".into(), self.path("home")), ("KUBECONFIG".into(), String::new())];
        Ok(spec)
    }

    /// etcd on a Unix socket, so that it needs no port (its peers' one, which nobody uses, is any). Nothing is synced to
    /// disk: what a power cut would lose is gone with the test anyway.
    pub(super) fn etcd(self) -> Result<Spec> {
        let client = format!("unix://{}", self.path("etcd.sock"));
        let args = vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.spec("etcd", args)
    }

    /// kube-apiserver at this address.
    pub(super) fn api_server(self, address: SocketAddr, options: &Options) -> Result<Spec> {
        let services = if options.dual_stack { SERVICES_OF_BOTH } else { SERVICES };
        let mut args = vec![
            format!("--etcd-servers=unix://{}", self.path("etcd.sock")),
            format!("--bind-address={}", address.ip()),
            format!("--secure-port={}", address.port()),
            // What the Service `kubernetes` leads to: an address of documentation, since a loopback one is refused.
            "--advertise-address=192.0.2.1".to_owned(),
            format!("--tls-cert-file={}", self.path("serving.crt")),
            format!("--tls-private-key-file={}", self.path("serving.key")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            format!("--service-account-key-file={}", self.path("accounts.pub")),
            format!("--service-account-signing-key-file={}", self.path("accounts.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--service-cluster-ip-range={services}"),
        ];
        args.extend(options.api_server.iter().cloned());
        self.spec("kube-apiserver", args)
    }

    /// kube-controller-manager, all of its controllers.
    pub(super) fn controllers(self, kubeconfig: &Path, options: &Options) -> Result<Spec> {
        let mut args = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--root-ca-file={}", self.path("ca.crt")),
            format!("--service-account-private-key-file={}", self.path("accounts.key")),
            "--allocate-node-cidrs=true".to_owned(),
        ];
        if options.dual_stack {
            args.push("--cluster-cidr=10.244.0.0/16,fd00:10:244::/48".to_owned());
            args.push(format!("--service-cluster-ip-range={SERVICES_OF_BOTH}"));
        } else {
            args.push("--cluster-cidr=10.244.0.0/16".to_owned());
        }
        self.spec("kube-controller-manager", args)
    }

    /// kube-scheduler.
    pub(super) fn scheduler(self, kubeconfig: &Path) -> Result<Spec> {
        let args = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        self.spec("kube-scheduler", args)
    }

    /// kwok, the kubelet of every node.
    pub(super) fn kubelets(self, kubeconfig: &Path) -> Result<Spec> {
        let args = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", places::tool("kwok-stages.yaml")?.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
            "--node-ip=192.0.2.2".to_owned(),
        ];
        self.spec("kwok", args)
    }
}
