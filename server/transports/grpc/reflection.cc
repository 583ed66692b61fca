#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/call/call.h"
#include "server/transports/grpc/standard_services.h"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// Adds the file and its imports, each once.
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

// The answer to one request. An item that is not found is an answer, too: the stream stays open.
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
      fail(grpc::StatusCode::INVALID_ARGUMENT, "the request has no message_request; set one");
      break;
  }
  return response;
}

// Reads a request, writes its answer, then reads the next one. A client that does not read its answer is cancelled.
template <typename Request, typename Response>
class ReflectionStream final : public CallWork {
 public:
  ReflectionStream(Call& call, Reflection& reflection) : call_(call), reflection_(reflection) {}

 private:
  absl::Status Admitted() override {
    const std::weak_ptr<Call> weak = call_.weak_from_this();
    LS_ASSIGN_OR_RETURN(held_, reflection_.streams.Add(call_.record().peer(), [weak] {
      if (const std::shared_ptr<Call> call = weak.lock()) {
        call->EndNow(absl::ResourceExhaustedError(absl::StrCat("ended to admit another stream: the server allows ",
                                                               Reflection::kMax, " open reflection streams")));
      }
    }));
    const MutexLock lock(call_.mutex());
    RestartTimer();
    return absl::OkStatus();
  }

  absl::Status Take() override {
    Request request;
    LS_RETURN_IF_ERROR(call_.Read(request));
    auto response = Answer<Request, Response>(request, reflection_.services);
    LS_RETURN_IF_ERROR(call_.HoldAnswer(response));
    LS_ASSIGN_OR_RETURN(CallAnswer answer, call_.Encode(std::move(response)));
    const MutexLock lock(call_.mutex());
    answer_ = std::move(answer);
    RestartTimer();
    return absl::OkStatus();
  }

  void Cancel(const absl::Status& reason) override { call_.End(reason); }

  void OnTimer(absl::Time /*now*/) override {
    call_.EndNow(absl::UnavailableError(absl::StrCat(
        "the stream was idle for ", absl::FormatDuration(Reflection::kLongestSilence), "; open another one")));
  }

  bool HasRoom() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return !answer_.has_value() && !call_.writing();
  }
  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return answer_.has_value() && call_.is_well();
  }
  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return call_.is_well() ? std::exchange(answer_, std::nullopt) : std::nullopt;
  }
  void Written() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { RestartTimer(); }

  void Ended() override { reflection_.streams.Remove(held_); }

  // Restarts the idle timer, after a message was read or written.
  void RestartTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    call_.SetWorkTimer(MonotonicNow() + Reflection::kLongestSilence);
    reflection_.streams.Touch(held_);
  }

  Call& call_;
  Reflection& reflection_;
  int64_t held_ = 0;
  std::optional<CallAnswer> answer_ ABSL_GUARDED_BY(call_.mutex());
};

template <typename Request, typename Response>
Rpc RowOf(const char* method, const char* name, Reflection& reflection) {
  Rpc rpc = Streaming<Request, Response>(
      {kNoFields, method, {.scope = Scope::kObserve}, name}, RpcKind::kBidirectional,
      [&reflection](Call& call) { return std::make_unique<ReflectionStream<Request, Response>>(call, reflection); });
  rpc.max_request_bytes = kMaxShortRequestBytes;
  return rpc;
}

}  // namespace

std::vector<Rpc> ReflectionRpcs(Reflection& reflection) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  return {RowOf<v1::ServerReflectionRequest, v1::ServerReflectionResponse>(
              "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
              "grpc.reflection.v1.ServerReflection.ServerReflectionInfo", reflection),
          RowOf<v1alpha::ServerReflectionRequest, v1alpha::ServerReflectionResponse>(
              "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo", reflection)};
}

}  // namespace longshort::server
