//! What holds for any text.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), json: bool) {
        read(if json { "a.json" } else { "a.yaml" }, &bytes);
    }

    #[test]
    fn damaged_manifests_never_panic(cut in 0usize..300, with in "[\\[\\]{}:,*&!|>'\"%@`\\-\n #]{0,4}") {
        let (before, after) = TWO.split_at(cut.min(TWO.len()));
        read("a.yaml", format!("{before}{with}{after}").as_bytes());
        read("a.yaml", format!("{before}{with}").as_bytes());
    }

    #[test]
    fn yaml_and_json_of_one_object_are_one_form(name in "[a-z]{1,8}", value in ".{0,40}", port in 1i32..65536) {
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "labels": {"v": value}},
            "spec": {"ports": [{"port": port}]},
        });
        let json = read("a.json", object.to_string().as_bytes());
        let yaml = read("a.yaml", serde_saphyr::to_string(&object).unwrap().as_bytes());
        prop_assert!(yaml.problems.is_empty(), "{:?}", yaml.problems);
        prop_assert_eq!(&json.objects[0].form, &yaml.objects[0].form);
        let restored = restore(ObjectKind::Service, &json.objects[0].form);
        prop_assert_eq!(restored.as_ref(), Some(&json.objects[0].object));
    }
}
