#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/admission/call_ending.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/names.h"
#include "server/rpc/pause_watch.h"
#include "server/rpc/rpc_call.h"
#include "server/rpc/short_request.h"

namespace longshort {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// The file, and once each that it imports.
template <typename Files>
void AddFiles(const FileDescriptor& file, std::set<std::string>& added, Files& files) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  files.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, files);
}

const FileDescriptor* FileOfExtension(const std::string& type, int number) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* message = pool.FindMessageTypeByName(type);
  const FieldDescriptor* extension = message == nullptr ? nullptr : pool.FindExtensionByNumber(message, number);
  return extension == nullptr ? nullptr : extension->file();
}

// The answer to one request. What is not found is an answer, too: the stream goes on.
template <typename Request, typename Response>
Response Answer(const Request& request, const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const auto fail = [&response](grpc::StatusCode code, const std::string& message) {
    response.mutable_error_response()->set_error_code(code);
    response.mutable_error_response()->set_error_message(message);
  };
  const auto describe = [&](const FileDescriptor* file, const std::string& what) {
    if (file == nullptr) return fail(grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", what));
    std::set<std::string> added;
    AddFiles(*file, added, *response.mutable_file_descriptor_response());
  };
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      describe(pool.FindFileByName(request.file_by_filename()), "file of that name");
      break;
    case Request::kFileContainingSymbol:
      describe(pool.FindFileContainingSymbol(request.file_containing_symbol()), "symbol of that name");
      break;
    case Request::kFileContainingExtension: {
      const auto& extension = request.file_containing_extension();
      describe(FileOfExtension(extension.containing_type(), extension.extension_number()), "such extension");
      break;
    }
    case Request::kAllExtensionNumbersOfType: {
      const Descriptor* message = pool.FindMessageTypeByName(request.all_extension_numbers_of_type());
      if (message == nullptr) {
        fail(grpc::StatusCode::NOT_FOUND, "there is no message of that name");
        break;
      }
      std::vector<const FieldDescriptor*> extensions;
      pool.FindAllExtensions(message, &extensions);
      auto& answer = *response.mutable_all_extension_numbers_response();
      answer.set_base_type_name(message->full_name());
      for (const FieldDescriptor* extension : extensions) answer.add_extension_number(extension->number());
      break;
    }
    case Request::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      fail(grpc::StatusCode::INVALID_ARGUMENT, "the request asks nothing");
      break;
  }
  return response;
}

// One stream: reads a request, writes its answer, reads the next one.
//
// Somebody is at work for the call (CallEnding) from when a request was read until its answer is written, so that
// nothing ends in between; a client that does not take its answer is cancelled. Ownership is shared between gRPC (until
// OnDone) and those that may end the stream, which do while it lives.
template <typename Request, typename Response>
class ReflectionCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                             public std::enable_shared_from_this<ReflectionCall<Request, Response>> {
 public:
  ReflectionCall(ReflectionSite& site, const ObserverNames& names, grpc::CallbackServerContext* context)
      : site_(site), context_(*context), call_(site.environment, names, *context) {}

  static ReflectionCall* Start(ReflectionSite& site, const ObserverNames& names, grpc::CallbackServerContext* context) {
    const auto call = std::make_shared<ReflectionCall>(site, names, context);
    call->grpc_reference_ = call;
    if (call->ending_.Enter()) {
      if (const absl::Status status = call->Begin(); !status.ok()) call->ending_.End(status);
      call->FinishIf(call->ending_.Leave());
    }
    return call.get();
  }

 private:
  absl::Status Begin() {
    LS_RETURN_IF_ERROR(call_.record().Admit());
    const auto end = [weak = this->weak_from_this()](const absl::Status& status) {
      if (const std::shared_ptr<ReflectionCall> call = weak.lock()) call->End(status);
    };
    LS_ASSIGN_OR_RETURN(held_, site_.streams.Add(context_.peer(), [end] {
      end(absl::ResourceExhaustedError(
          absl::StrCat("more than ", ReflectionSite::kMost, " streams: one of a connection that has many gave way")));
    }));
    watch_ = PauseWatch::Start(ReflectionSite::kLongestSilence, [end] {
      end(absl::UnavailableError(absl::StrCat(
          "the stream was silent for ", absl::FormatDuration(ReflectionSite::kLongestSilence), "; open another one")));
    });
    this->StartRead(&incoming_);
    return absl::OkStatus();
  }

  void OnReadDone(bool ok) override {
    answering_ = true;
    if (!ending_.Enter()) return;
    if (!ok) return Leave(absl::OkStatus());
    GoOn();
    const auto request = TakeShortRequest<Request>(incoming_);
    if (!request.ok()) return Leave(request.status());
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(Answer<Request, Response>(*request, site_.services));
    if (!bytes.ok()) return Leave(bytes.status());
    on_its_way_ = *std::move(bytes);
    call_.BeginAnswer();
    this->StartWrite(&on_its_way_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Leave(absl::CancelledError("the client went away"));
    answering_ = false;
    GoOn();
    if (!ending_.ended()) this->StartRead(&incoming_);
    FinishIf(ending_.Leave());
  }

  void OnCancel() override { FinishIf(ending_.End(absl::CancelledError("the client cancelled"))); }
  void OnDone() override { grpc_reference_.reset(); }

  void GoOn() {
    watch_->GoOn();
    site_.streams.Touch(held_);
  }

  // By others. An answer that the client does not take would hold the end up.
  void End(const absl::Status& status) {
    if (!ending_.Enter()) return;
    if (answering_) context_.TryCancel();
    Leave(status);
  }

  // The call ends with `status`, if it has not ended before.
  void Leave(const absl::Status& status) {
    ending_.End(status);
    FinishIf(ending_.Leave());
  }

  void FinishIf(const std::optional<absl::Status>& status) {
    if (!status.has_value()) return;
    if (watch_ != nullptr) watch_->Stop();
    site_.streams.Remove(held_);
    this->Finish(call_.Finish(*status));
  }

  ReflectionSite& site_;
  grpc::CallbackServerContext& context_;
  RpcCall call_;
  std::shared_ptr<ReflectionCall> grpc_reference_;
  CallEnding ending_;
  int64_t held_ = 0;
  std::shared_ptr<PauseWatch> watch_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer on_its_way_;
  std::atomic<bool> answering_ = false;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ReflectionV1Service::ServerReflectionInfo(
    grpc::CallbackServerContext* context) {
  using Call =
      ReflectionCall<grpc::reflection::v1::ServerReflectionRequest, grpc::reflection::v1::ServerReflectionResponse>;
  return Call::Start(site_, kReflectionV1Names, context);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ReflectionV1AlphaService::ServerReflectionInfo(
    grpc::CallbackServerContext* context) {
  using Call = ReflectionCall<grpc::reflection::v1alpha::ServerReflectionRequest,
                              grpc::reflection::v1alpha::ServerReflectionResponse>;
  return Call::Start(site_, kReflectionV1AlphaNames, context);
}

}  // namespace longshort
