//! The rig proves itself: Helm checks a chart, prints it and installs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use it::cluster::{Cluster, Options};
use it::helm::Helm;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

fn write_chart(folder: &Path) {
    std::fs::create_dir(folder.join("templates")).unwrap();
    let chart = "{apiVersion: v2, name: tiny, version: 1.0.0, icon: https://example.com/icon.png}";
    std::fs::write(folder.join("Chart.yaml"), chart).unwrap();
    std::fs::write(folder.join("values.yaml"), "word: old\n").unwrap();
    let schema = r#"{"properties": {"word": {"type": "string"}}}"#;
    std::fs::write(folder.join("values.schema.json"), schema).unwrap();
    let template = "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}},
                     data: {word: {{ .Values.word | quote }}}}";
    std::fs::write(folder.join("templates/map.yaml"), template).unwrap();
}

#[tokio::test]
async fn a_chart_is_checked_printed_installed_changed_and_removed() {
    let chart = it::places::folder().unwrap();
    let chart = chart.path();
    write_chart(chart);
    let helm = Helm::new().unwrap();
    assert!(helm.lint(chart, &[]).await.unwrap().contains("0 chart(s) failed"));
    let wrong = helm.lint(chart, &["--set", "word=1"]).await.unwrap_err().to_string();
    assert!(wrong.contains("word"), "{wrong}");
    let printed = helm.template("it", chart, &["--set", "word=new"]).await.unwrap();
    assert!(printed.contains("\"new\""), "{printed}");

    let cluster = Cluster::start(Options::bare()).await.unwrap();
    let admin = cluster.kubeconfig(&cluster.admin()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await.unwrap(), "default");
    for word in ["old", "new"] {
        let set = format!("word={word}");
        helm.upgrade(&admin, "it", chart, &["--set", &set]).await.unwrap();
        assert_eq!(maps.get("it").await.unwrap().data.unwrap()["word"], word);
    }
    helm.run(&admin, &["uninstall", "it"]).await.unwrap();
    assert!(maps.get_opt("it").await.unwrap().is_none());
}
