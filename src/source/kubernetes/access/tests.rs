#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: one
clusters:
  - { name: here, cluster: { server: "https://127.0.0.1:6443/", insecure-skip-tls-verify: true, proxy-url: "socks5://10.0.0.9:1080" } }
  - { name: there, cluster: { server: "https://10.0.0.1:6443", certificate-authority: ca.crt } }
contexts:
  - { name: one, context: { cluster: here, user: u, namespace: mesh } }
  - { name: two, context: { cluster: there, user: u } }
users:
  - { name: u, user: { token: t } }
"#;

fn access(folder: &Path, text: &str, context: Option<&str>) -> Access {
    let path = folder.join("config");
    std::fs::write(&path, text).unwrap();
    Access { kubeconfig: Some(path), context: context.map(str::to_owned) }
}

#[tokio::test]
async fn a_kubeconfig_names_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let connection = connect(&access(folder.path(), KUBECONFIG, None)).await.unwrap();
    assert_eq!(connection.server, "https://127.0.0.1:6443");
    assert_eq!(connection.namespace, "mesh");
}

#[tokio::test]
async fn an_authority_in_a_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.crt"), certificate.cert.pem()).unwrap();
    let access = access(folder.path(), KUBECONFIG, Some("two"));
    let config = config(&access).await.unwrap();
    assert_eq!(config.root_cert_file, Some(folder.path().join("ca.crt")));
    let connection = connect(&access).await.unwrap();
    assert_eq!(connection.server, "https://10.0.0.1:6443");
}

#[tokio::test]
async fn what_cannot_be_used_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let without = KUBECONFIG.replace("current-context: one", "");
    let table: [(&str, Option<&str>, &[&str]); 5] = [
        (KUBECONFIG, Some("three"), &["no context \"three\"", "it has one, two"]),
        (&without, None, &["no current context", "--context", "one, two"]),
        ("", None, &["no current context", "it has none"]),
        ("{", None, &["cannot be used", "--kubeconfig"]),
        // The authority's file is not there.
        (KUBECONFIG, Some("two"), &["cannot be used", "ca.crt"]),
    ];
    for (text, context, words) in table {
        let told = connect(&access(folder.path(), text, context)).await.unwrap_err().to_string();
        for word in words {
            assert!(told.contains(word), "{word} in {told}");
        }
    }
    let absent = Access { kubeconfig: Some(folder.path().join("nothing")), context: None };
    let told = connect(&absent).await.unwrap_err().to_string();
    assert!(told.contains("nothing") && told.contains("No such file"), "{told}");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_gone_through_is_told_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    for proxy in
        ["http://10.0.0.9:3128/", "https://10.0.0.9/", "socks5://10.0.0.9:1080/", "ftp://10.0.0.9/"]
    {
        let text = KUBECONFIG
            .replace("127.0.0.1:6443", "10.0.0.1:6443")
            .replace("socks5://10.0.0.9:1080", proxy);
        let told = connect(&access(folder.path(), &text, None)).await.unwrap_err().to_string();
        for word in [proxy, "remove proxy-url", "HTTPS_PROXY", "ssh -L"] {
            assert!(told.contains(word), "{word} in {told}");
        }
    }
    // A password is in no log.
    let text = KUBECONFIG
        .replace("127.0.0.1:6443", "10.0.0.1:6443")
        .replace("socks5://10.0.0.9:1080", "http://joe:hush@10.0.0.9:3128/");
    let told = connect(&access(folder.path(), &text, None)).await.unwrap_err().to_string();
    assert!(told.contains("http://10.0.0.9:3128/") && !told.contains("hush"), "{told}");
}

#[test]
fn this_machine_is_reached_without_a_proxy() {
    for (server, loopback) in [
        ("https://127.0.0.1:6443", true),
        ("https://[::1]:6443", true),
        ("https://localhost", true),
        ("https://10.0.0.1:6443", false),
        ("https://kubernetes.default.svc", false),
    ] {
        assert_eq!(is_loopback(&server.parse().unwrap()), loopback, "{server}");
    }
}
