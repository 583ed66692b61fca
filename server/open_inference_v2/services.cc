#include "server/open_inference_v2/services.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/handlers/manage_models.h"
#include "server/open_inference_v2/descriptions.h"
#include "server/open_inference_v2/infer.h"
#include "server/open_inference_v2/infer_plan.h"
#include "server/open_inference_v2/infer_stream.h"
#include "server/open_inference_v2/names.h"
#include "server/rpc/deferred_call.h"
#include "server/rpc/immediate_call.h"

namespace longshort {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// The versions of this name that serve, or the one that was asked for.
std::vector<int64_t> VersionsOf(const ServedModel& served, const ModelReference& reference,
                                const ModelRegistry& models) {
  if (reference.version != 0) return {served.version};
  std::vector<int64_t> versions;
  for (const std::shared_ptr<ServedModel>& one : models.List()) {
    if (one->name == served.name) versions.push_back(one->version);
  }
  return versions;
}

using Index = inference::RepositoryIndexResponse;

void Add(const std::string& name, int64_t version, const char* state, Index& index) {
  Index::ModelIndex& model = *index.add_models();
  model.set_name(name);
  model.set_version(absl::StrCat(version));
  model.set_state(state);
}

// What serves, of what the caller may use.
Index IndexOfServed(const ModelRegistry& models, const Caller& caller) {
  Index index;
  for (const std::shared_ptr<ServedModel>& served : models.List()) {
    if (caller.MayUse(served->name)) Add(served->name, served->version, "READY", index);
  }
  return index;
}

// The same, and behind it what could be loaded.
Index WithOthers(Index index, const RepositoryListing& folders, const Caller& caller) {
  std::set<std::pair<std::string, std::string>> served;
  for (const Index::ModelIndex& model : index.models()) served.emplace(model.name(), model.version());
  for (const auto& [name, versions] : folders.versions) {
    if (!caller.MayUse(name)) continue;
    for (const int64_t version : versions) {
      if (served.count({name, absl::StrCat(version)}) > 0) continue;
      Add(name, version, "UNAVAILABLE", index);
      index.mutable_models()->rbegin()->set_reason("not loaded");
    }
  }
  return index;
}

// The model's name: where this contract has it, or where KServe's has it.
template <typename Message>
const std::string& ModelNameOf(const Message& message) {
  return message.model_name().empty() ? message.repository_name() : message.model_name();
}

template <typename Message>
absl::Status RefuseParameters(const Message& message, const std::string& known) {
  for (const auto& [name, value] : message.parameters()) {
    if (name == known) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameters.", name.substr(0, 64),
                     " is set; a model is loaded as its folder in the server's repository says, without parameters"));
  }
  return absl::OkStatus();
}

template <typename Request>
ServerUnaryReactor* Refuse(const CallEnvironment& environment, const OpenInferenceNames& names,
                           CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response,
                           const char* why) {
  return AnswerAtOnce<Request>(
      environment, names, context, request, response,
      [why](CallRecord&, const Request&) -> absl::StatusOr<Request> { return absl::UnimplementedError(why); });
}

template <typename Request, typename Response>
ServerUnaryReactor* AnswerNothing(const CallEnvironment& environment, const OpenInferenceNames& names,
                                  CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
  return AnswerAtOnce<Request>(environment, names, context, request, response,
                               [](CallRecord&, const Request&) -> absl::StatusOr<Response> { return Response(); });
}

constexpr char kNoSharedMemory[] =
    "there is no shared memory: tensors come in requests, and go in answers, over the connection";
constexpr char kNoSettings[] = "how the server logs is decided by its options, at its start";

}  // namespace

ServerUnaryReactor* OpenInferenceService::ServerLive(CallbackServerContext* context, const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return AnswerAtOnce<inference::ServerLiveRequest>(
      environment_, kServerLiveNames, context, request, response,
      [](CallRecord&, const inference::ServerLiveRequest&) -> absl::StatusOr<inference::ServerLiveResponse> {
        inference::ServerLiveResponse message;
        message.set_live(true);
        return message;
      });
}

ServerUnaryReactor* OpenInferenceService::ServerReady(CallbackServerContext* context, const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return AnswerAtOnce<inference::ServerReadyRequest>(
      environment_, kServerReadyNames, context, request, response,
      [this](CallRecord&, const inference::ServerReadyRequest&) -> absl::StatusOr<inference::ServerReadyResponse> {
        inference::ServerReadyResponse message;
        message.set_ready(!environment_.gate.stopping());
        return message;
      });
}

ServerUnaryReactor* OpenInferenceService::ModelReady(CallbackServerContext* context, const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return AnswerAtOnce<inference::ModelReadyRequest>(
      environment_, kModelReadyNames, context, request, response,
      [this](CallRecord& record,
             const inference::ModelReadyRequest& message) -> absl::StatusOr<inference::ModelReadyResponse> {
        LS_ASSIGN_OR_RETURN(const ModelReference reference,
                            ReferenceOf(message.name(), message.version(), record.names()));
        absl::Status found = record.FindModel(reference).status();
        if (!found.ok() && !absl::IsNotFound(found)) return found;
        inference::ModelReadyResponse answer;
        answer.set_ready(found.ok() && !environment_.gate.stopping());
        return answer;
      });
}

ServerUnaryReactor* OpenInferenceService::ServerMetadata(CallbackServerContext* context, const ByteBuffer* request,
                                                         ByteBuffer* response) {
  return AnswerAtOnce<inference::ServerMetadataRequest>(
      environment_, kServerMetadataNames, context, request, response,
      [this](CallRecord&, const inference::ServerMetadataRequest&)
          -> absl::StatusOr<inference::ServerMetadataResponse> { return DescribeServer(environment_.model_control); });
}

ServerUnaryReactor* OpenInferenceService::ModelMetadata(CallbackServerContext* context, const ByteBuffer* request,
                                                        ByteBuffer* response) {
  return AnswerAtOnce<inference::ModelMetadataRequest>(
      environment_, kModelMetadataNames, context, request, response,
      [this](CallRecord& record,
             const inference::ModelMetadataRequest& message) -> absl::StatusOr<inference::ModelMetadataResponse> {
        LS_ASSIGN_OR_RETURN(const ModelReference reference,
                            ReferenceOf(message.name(), message.version(), record.names()));
        LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served, record.FindModel(reference));
        return ToMetadata(DescribeModel(*served, environment_.limits),
                          VersionsOf(*served, reference, environment_.models));
      });
}

ServerUnaryReactor* OpenInferenceService::ModelConfig(CallbackServerContext* context, const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return AnswerAtOnce<inference::ModelConfigRequest>(
      environment_, kModelConfigNames, context, request, response,
      [this](CallRecord& record,
             const inference::ModelConfigRequest& message) -> absl::StatusOr<inference::ModelConfigResponse> {
        LS_ASSIGN_OR_RETURN(const ModelReference reference,
                            ReferenceOf(message.name(), message.version(), record.names()));
        LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served, record.FindModel(reference));
        inference::ModelConfigResponse answer;
        *answer.mutable_config() = ToConfig(DescribeModel(*served, environment_.limits));
        return answer;
      });
}

ServerUnaryReactor* OpenInferenceService::ModelInfer(CallbackServerContext* context, const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return AnswerLater<inference::ModelInferRequest>(
      environment_, kModelInferNames, context, request, response,
      [](CallRecord& record, inference::ModelInferRequest message, const auto& answer) -> absl::Status {
        LS_ASSIGN_OR_RETURN(InferPlan plan, PlanInfer(record, std::move(message)));
        return Infer(record, std::move(plan), answer);
      });
}

ServerUnaryReactor* OpenInferenceService::RepositoryIndex(CallbackServerContext* context, const ByteBuffer* request,
                                                          ByteBuffer* response) {
  return AnswerLater<inference::RepositoryIndexRequest>(
      environment_, kRepositoryIndexNames, context, request, response,
      [this](CallRecord& record, const inference::RepositoryIndexRequest& message, const auto& answer) -> absl::Status {
        Index served = IndexOfServed(environment_.models, record.caller());
        if (message.ready()) {
          answer(absl::StatusOr<Index>(std::move(served)));
          return absl::OkStatus();
        }
        environment_.manager.ListFolders(
            [answer, served, caller = record.caller()](const absl::StatusOr<RepositoryListing>& folders) {
              if (!folders.ok()) return answer(absl::StatusOr<Index>(folders.status()));
              answer(absl::StatusOr<Index>(WithOthers(served, *folders, caller)));
            });
        return absl::OkStatus();
      });
}

ServerUnaryReactor* OpenInferenceService::RepositoryModelLoad(CallbackServerContext* context, const ByteBuffer* request,
                                                              ByteBuffer* response) {
  return AnswerLater<inference::RepositoryModelLoadRequest>(
      environment_, kRepositoryModelLoadNames, context, request, response,
      [](CallRecord& record, const inference::RepositoryModelLoadRequest& message, const auto& answer) -> absl::Status {
        LS_RETURN_IF_ERROR(RefuseParameters(message, ""));
        const std::string name = ModelNameOf(message);
        auto answer_loaded = [answer, name](const absl::StatusOr<std::shared_ptr<ServedModel>>& loaded) {
          if (!loaded.ok()) return answer(absl::StatusOr<inference::RepositoryModelLoadResponse>(loaded.status()));
          inference::RepositoryModelLoadResponse loaded_message;
          loaded_message.set_model_name(name);
          loaded_message.set_isloaded(true);
          answer(absl::StatusOr<inference::RepositoryModelLoadResponse>(std::move(loaded_message)));
        };
        return LoadModel(record, {.name = name}, std::move(answer_loaded));
      });
}

ServerUnaryReactor* OpenInferenceService::RepositoryModelUnload(CallbackServerContext* context,
                                                                const ByteBuffer* request, ByteBuffer* response) {
  return AnswerLater<inference::RepositoryModelUnloadRequest>(
      environment_, kRepositoryModelUnloadNames, context, request, response,
      [](CallRecord& record, const inference::RepositoryModelUnloadRequest& message,
         const auto& answer) -> absl::Status {
        LS_RETURN_IF_ERROR(RefuseParameters(message, "unload_dependents"));  // nothing depends on another here
        const std::string name = ModelNameOf(message);
        auto answer_unloaded = [answer, name](const absl::Status& status) {
          if (!status.ok()) return answer(absl::StatusOr<inference::RepositoryModelUnloadResponse>(status));
          inference::RepositoryModelUnloadResponse unloaded;
          unloaded.set_model_name(name);
          unloaded.set_isunloaded(true);
          answer(absl::StatusOr<inference::RepositoryModelUnloadResponse>(std::move(unloaded)));
        };
        return UnloadModel(record, {.name = name}, std::move(answer_unloaded));
      });
}

ServerUnaryReactor* OpenInferenceService::ModelStatistics(CallbackServerContext* context, const ByteBuffer* request,
                                                          ByteBuffer* response) {
  return AnswerAtOnce<inference::ModelStatisticsRequest>(
      environment_, kModelStatisticsNames, context, request, response,
      [this](CallRecord& record,
             const inference::ModelStatisticsRequest& message) -> absl::StatusOr<inference::ModelStatisticsResponse> {
        LS_ASSIGN_OR_RETURN(const ModelReference reference,
                            ReferenceOf(message.name(), message.version(), record.names()));
        if (!reference.name.empty()) LS_RETURN_IF_ERROR(record.FindModel(reference).status());
        inference::ModelStatisticsResponse answer;
        for (const std::shared_ptr<ServedModel>& served : environment_.models.List()) {
          const bool asked = (reference.name.empty() || reference.name == served->name) &&
                             (reference.version == 0 || reference.version == served->version);
          if (asked && record.caller().MayUse(served->name)) *answer.add_model_stats() = ToStatistics(*served);
        }
        return answer;
      });
}

ServerUnaryReactor* OpenInferenceService::SystemSharedMemoryStatus(CallbackServerContext* context,
                                                                   const ByteBuffer* request, ByteBuffer* response) {
  return AnswerNothing<inference::SystemSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusResponse>(
      environment_, kSharedMemoryNames, context, request, response);
}

ServerUnaryReactor* OpenInferenceService::SystemSharedMemoryRegister(CallbackServerContext* context,
                                                                     const ByteBuffer* request, ByteBuffer* response) {
  return Refuse<inference::SystemSharedMemoryRegisterRequest>(environment_, kSharedMemoryNames, context, request,
                                                              response, kNoSharedMemory);
}

ServerUnaryReactor* OpenInferenceService::SystemSharedMemoryUnregister(CallbackServerContext* context,
                                                                       const ByteBuffer* request,
                                                                       ByteBuffer* response) {
  return Refuse<inference::SystemSharedMemoryUnregisterRequest>(environment_, kSharedMemoryNames, context, request,
                                                                response, kNoSharedMemory);
}

ServerUnaryReactor* OpenInferenceService::CudaSharedMemoryStatus(CallbackServerContext* context,
                                                                 const ByteBuffer* request, ByteBuffer* response) {
  return AnswerNothing<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
      environment_, kSharedMemoryNames, context, request, response);
}

ServerUnaryReactor* OpenInferenceService::CudaSharedMemoryRegister(CallbackServerContext* context,
                                                                   const ByteBuffer* request, ByteBuffer* response) {
  return Refuse<inference::CudaSharedMemoryRegisterRequest>(environment_, kSharedMemoryNames, context, request,
                                                            response, kNoSharedMemory);
}

ServerUnaryReactor* OpenInferenceService::CudaSharedMemoryUnregister(CallbackServerContext* context,
                                                                     const ByteBuffer* request, ByteBuffer* response) {
  return Refuse<inference::CudaSharedMemoryUnregisterRequest>(environment_, kSharedMemoryNames, context, request,
                                                              response, kNoSharedMemory);
}

ServerUnaryReactor* OpenInferenceService::TraceSetting(CallbackServerContext* context, const ByteBuffer* request,
                                                       ByteBuffer* response) {
  return Refuse<inference::TraceSettingRequest>(environment_, kTraceSettingNames, context, request, response,
                                                kNoSettings);
}

ServerUnaryReactor* OpenInferenceService::LogSettings(CallbackServerContext* context, const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Refuse<inference::LogSettingsRequest>(environment_, kLogSettingsNames, context, request, response,
                                               kNoSettings);
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* OpenInferenceService::ModelStreamInfer(
    CallbackServerContext* context) {
  return BidirectionalStream::Start(std::make_shared<InferStream>(environment_, context));
}

}  // namespace longshort
