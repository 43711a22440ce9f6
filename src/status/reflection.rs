//! gRPC server reflection: the descriptors of all that is served and sent, for clients that have
//! none, such as `grpcurl`.
//!
//! Messages stand here as they are on the wire; the versions v1 and v1alpha of the protocol have
//! the same. Field numbers are those of `grpc/reflection/v1/reflection.proto`.

use prost_reflect::{DescriptorPool, FileDescriptor};
use tonic::body::Body;
use tonic::{Code, Status};

use super::{SERVICES, grpc};
use crate::descriptors;

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Request {
    #[prost(string, tag = "1")]
    pub(super) host: String,
    #[prost(oneof = "Question", tags = "3, 4, 5, 6, 7")]
    pub(super) question: Option<Question>,
}

/// What is asked for.
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub(super) enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(message, tag = "5")]
    Extension(ExtensionRequest),
    #[prost(string, tag = "6")]
    ExtensionNumbers(String),
    #[prost(string, tag = "7")]
    Services(String),
}

/// `ExtensionRequest`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct ExtensionRequest {
    #[prost(string, tag = "1")]
    pub(super) of: String,
    #[prost(int32, tag = "2")]
    pub(super) number: i32,
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) host: String,
    #[prost(message, optional, tag = "2")]
    pub(super) request: Option<Request>,
    #[prost(oneof = "Answer", tags = "4, 5, 6, 7")]
    pub(super) answer: Option<Answer>,
}

/// What is answered.
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub(super) enum Answer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "5")]
    Numbers(Numbers),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Refusal),
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

/// `ExtensionNumberResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Numbers {
    #[prost(string, tag = "1")]
    pub(super) of: String,
    #[prost(int32, repeated, tag = "2")]
    pub(super) numbers: Vec<i32>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Services {
    #[prost(message, repeated, tag = "1")]
    pub(super) services: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Service {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// `ErrorResponse`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Refusal {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// The method `ServerReflectionInfo`. The descriptors are read when somebody asks first.
pub(super) async fn answer(request: http::Request<Body>) -> http::Response<Body> {
    match descriptors::pool() {
        Ok(pool) => grpc::stream(request, |request| Ok(respond(pool, request))).await,
        Err(error) => Status::internal(error.to_string()).into_http(),
    }
}

/// The answer to one request. What is not there is an answer too, and the stream goes on.
pub(super) fn respond(pool: &DescriptorPool, request: Request) -> Response {
    let answer = match &request.question {
        Some(Question::File(name)) => file(pool.get_file_by_name(name), || format!("file {name}")),
        Some(Question::Symbol(name)) => file(holder(pool, name), || format!("symbol {name}")),
        Some(Question::Extension(ExtensionRequest { of, number })) => {
            let message = pool.get_message_by_name(of);
            let number = u32::try_from(*number).unwrap_or_default();
            let extension = message.and_then(|message| message.get_extension(number));
            let holder = extension.map(|extension| extension.parent_file());
            file(holder, || format!("extension {number} of {of}"))
        }
        Some(Question::ExtensionNumbers(of)) => match pool.get_message_by_name(of) {
            Some(message) => {
                let numbers =
                    message.extensions().map(|extension| extension.number().cast_signed());
                Answer::Numbers(Numbers { of: of.clone(), numbers: numbers.collect() })
            }
            None => absent(&format!("message {of}")),
        },
        Some(Question::Services(_)) => {
            let services = SERVICES.map(|name| Service { name: name.to_owned() });
            Answer::Services(Services { services: services.into() })
        }
        None => refusal(Code::InvalidArgument, "the request asks for nothing".to_owned()),
    };
    Response { host: request.host.clone(), request: Some(request), answer: Some(answer) }
}

/// The file that defines a symbol.
fn holder(pool: &DescriptorPool, name: &str) -> Option<FileDescriptor> {
    let whole = |name: &str| {
        let message = || pool.get_message_by_name(name).map(|found| found.parent_file());
        let service = || pool.get_service_by_name(name).map(|found| found.parent_file());
        let kind = || pool.get_enum_by_name(name).map(|found| found.parent_file());
        let extension = || pool.get_extension_by_name(name).map(|found| found.parent_file());
        message().or_else(service).or_else(kind).or_else(extension)
    };
    let part = || {
        let (of, part) = name.rsplit_once('.')?;
        let field = pool.get_message_by_name(of).filter(|message| {
            message.get_field_by_name(part).is_some() || message.oneofs().any(|o| o.name() == part)
        });
        let method = || {
            let service = pool.get_service_by_name(of)?;
            let found = service.methods().any(|method| method.name() == part);
            found.then(|| service.parent_file())
        };
        field.map(|message| message.parent_file()).or_else(method)
    };
    whole(name).or_else(part)
}

fn file(found: Option<FileDescriptor>, what: impl FnOnce() -> String) -> Answer {
    match found {
        Some(file) => Answer::Files(Files { files: vec![file.encode_to_vec()] }),
        None => absent(&what()),
    }
}

fn absent(what: &str) -> Answer {
    refusal(Code::NotFound, format!("no {what} is known here"))
}

fn refusal(code: Code, message: String) -> Answer {
    Answer::Error(Refusal { code: code.into(), message })
}
