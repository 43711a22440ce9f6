//! Reflection, question by question.

use prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;

use crate::descriptors::pool;
use crate::status::SERVICES;
use crate::status::reflection::{Answer, ExtensionRequest, Question, Request, respond};

fn ask(question: Option<Question>) -> Answer {
    let request = Request { host: "h".into(), question };
    let response = respond(pool().unwrap(), request.clone());
    assert_eq!((response.host.as_str(), response.request), ("h", Some(request)));
    response.answer.unwrap()
}

/// The name of the file that answers a question; the code of an error.
fn file(question: Question) -> Result<String, i32> {
    match ask(Some(question)) {
        Answer::Files(files) => {
            let [file] = files.files.as_slice() else { panic!("{} files", files.files.len()) };
            Ok(FileDescriptorProto::decode(file.as_slice()).unwrap().name().to_owned())
        }
        Answer::Error(error) => Err(error.code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn s32_every_service_is_listed_and_described() {
    let Answer::Services(listed) = ask(Some(Question::Services("*".into()))) else { panic!() };
    let names: Vec<_> = listed.services.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(names, SERVICES);
    let mut sorted = SERVICES;
    sorted.sort_unstable();
    assert_eq!(sorted, SERVICES);
    for name in SERVICES {
        file(Question::Symbol(name.into())).unwrap();
    }
}

#[test]
fn s32_symbols_of_every_sort_lead_to_their_file() {
    let cluster = "envoy/config/cluster/v3/cluster.proto";
    for (symbol, expected) in [
        ("envoy.config.cluster.v3.Cluster", Ok(cluster)),
        ("envoy.config.cluster.v3.Cluster.DiscoveryType", Ok(cluster)),
        ("envoy.config.cluster.v3.Cluster.name", Ok(cluster)),
        ("envoy.config.cluster.v3.Cluster.lb_config", Ok(cluster)),
        ("grpc.health.v1.Health.Check", Ok("grpc/health/v1/health.proto")),
        ("udpa.annotations.versioning", Ok("udpa/annotations/versioning.proto")),
        ("envoy.config.cluster.v3.Cluster.nothing", Err(5)),
        ("nothing", Err(5)),
        ("", Err(5)),
    ] {
        let expected = expected.map(str::to_owned);
        assert_eq!(file(Question::Symbol(symbol.into())), expected, "{symbol}");
    }
    assert_eq!(file(Question::File(cluster.into())).unwrap(), cluster);
    assert_eq!(file(Question::File("nothing.proto".into())), Err(5));
    let options = "google.protobuf.MessageOptions";
    let Answer::Numbers(numbers) = ask(Some(Question::ExtensionNumbers(options.into()))) else {
        panic!()
    };
    let number = numbers.numbers[0];
    assert!(file(Question::Extension(ExtensionRequest { of: options.into(), number })).is_ok());
    let wrong = ExtensionRequest { of: options.into(), number: -1 };
    assert_eq!(file(Question::Extension(wrong)), Err(5));
    let Answer::Error(error) = ask(None) else { panic!() };
    assert_eq!(error.code, 3);
}
