#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/unary.h"
#include "server/fronts/open_inference/infer.h"
#include "server/fronts/open_inference/model_tensors.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

using inference::ModelConfigRequest;
using inference::ModelConfigResponse;
using inference::ModelMetadataRequest;
using inference::ModelMetadataResponse;
using inference::ModelReadyRequest;
using inference::ModelReadyResponse;
using inference::ModelStatisticsRequest;
using inference::ModelStatisticsResponse;
using inference::RepositoryModelLoadRequest;
using inference::RepositoryModelLoadResponse;
using inference::RepositoryModelUnloadRequest;
using inference::RepositoryModelUnloadResponse;

// The served versions of this name, or the one that the reference names.
std::vector<int64_t> VersionsOf(const core::ServedModel& served, const ModelReference& reference,
                                const core::ModelRegistry& models) {
  if (reference.version != 0) return {served.version};
  std::vector<int64_t> versions;
  for (const std::shared_ptr<core::ServedModel>& one : models.List()) {
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

// The served models that the caller may use.
Index IndexOfServed(const core::ModelRegistry& models, const Caller& caller) {
  Index index;
  for (const std::shared_ptr<core::ServedModel>& served : models.List()) {
    if (caller.MayUse(served->name)) Add(served->name, served->version, "READY", index);
  }
  return index;
}

// Appends the models in the repository that are not loaded.
Index WithOthers(Index index, const core::RepositoryListing& folders, const core::ModelRegistry& models,
                 const Caller& caller) {
  const auto failures = models.failures();
  std::set<std::pair<std::string, std::string>> served;
  for (const Index::ModelIndex& model : index.models()) served.emplace(model.name(), model.version());
  for (const auto& [name, versions] : folders.versions) {
    if (!caller.MayUse(name)) continue;
    for (const int64_t version : versions) {
      if (served.count({name, absl::StrCat(version)}) > 0) continue;
      Add(name, version, "UNAVAILABLE", index);
      auto failure = failures.find({name, version});
      if (failure == failures.end()) failure = failures.find({name, 0});
      index.mutable_models()->rbegin()->set_reason(
          failure == failures.end() ? "not loaded" : std::string(models.WithoutPath(failure->second).message()));
    }
  }
  return index;
}

// The model's name, from this contract's field or from KServe's.
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
                     " is set; models are loaded as configured in the server's repository, without parameters"));
  }
  return absl::OkStatus();
}

// The model that a request names, and the reference by which it names it.
struct NamedModel {
  ModelReference reference;
  std::shared_ptr<const core::ServedModel> served;
};

template <typename Request>
absl::StatusOr<NamedModel> FindNamed(CallRecord& record, const Request& request) {
  NamedModel named;
  LS_ASSIGN_OR_RETURN(named.reference, ReferenceOf(request.name(), request.version(), record.names()));
  LS_ASSIGN_OR_RETURN(named.served, record.FindModel(named.reference));
  return named;
}

absl::StatusOr<inference::ServerLiveResponse> IsServerLive(CallRecord& /*record*/,
                                                           const inference::ServerLiveRequest& /*request*/) {
  inference::ServerLiveResponse answer;
  answer.set_live(true);
  return answer;
}

absl::StatusOr<inference::ServerReadyResponse> IsServerReady(CallRecord& record,
                                                             const inference::ServerReadyRequest& /*request*/) {
  inference::ServerReadyResponse answer;
  answer.set_ready(!record.environment().gate.stopping());
  return answer;
}

absl::StatusOr<ModelReadyResponse> IsModelReady(CallRecord& record, const ModelReadyRequest& request) {
  absl::Status found = FindNamed(record, request).status();
  if (!found.ok() && !absl::IsNotFound(found)) return found;
  ModelReadyResponse answer;
  answer.set_ready(found.ok() && !record.environment().gate.stopping());
  return answer;
}

absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata(CallRecord& record,
                                                                 const inference::ServerMetadataRequest& /*request*/) {
  return DescribeServer(record.environment().model_control);
}

absl::StatusOr<ModelMetadataResponse> ModelMetadata(CallRecord& record, const ModelMetadataRequest& request) {
  LS_ASSIGN_OR_RETURN(const NamedModel model, FindNamed(record, request));
  const CallEnvironment& environment = record.environment();
  return ToMetadata(*model.served, environment.limits, VersionsOf(*model.served, model.reference, environment.models));
}

absl::StatusOr<ModelConfigResponse> ModelConfig(CallRecord& record, const ModelConfigRequest& request) {
  LS_ASSIGN_OR_RETURN(const NamedModel model, FindNamed(record, request));
  ModelConfigResponse answer;
  *answer.mutable_config() = ToConfig(*model.served, record.environment().limits);
  return answer;
}

absl::StatusOr<ModelStatisticsResponse> ModelStatistics(CallRecord& record, const ModelStatisticsRequest& request) {
  LS_ASSIGN_OR_RETURN(const ModelReference reference, ReferenceOf(request.name(), request.version(), record.names()));
  if (!reference.name.empty()) LS_RETURN_IF_ERROR(record.FindModel(reference).status());
  ModelStatisticsResponse answer;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    const bool asked = (reference.name.empty() || reference.name == served->name) &&
                       (reference.version == 0 || reference.version == served->version);
    if (asked && record.caller().MayUse(served->name)) *answer.add_model_stats() = ToStatistics(*served);
  }
  return answer;
}

absl::Status ModelInfer(CallRecord& record, inference::ModelInferRequest request,
                        const Answerer<inference::ModelInferResponse>& answer) {
  LS_ASSIGN_OR_RETURN(InferPlan plan, PlanInfer(record, std::move(request)));
  return Infer(record, std::move(plan), [answer](auto make) { answer.From(std::move(make)); });
}

absl::Status RepositoryIndex(CallRecord& record, const inference::RepositoryIndexRequest& request,
                             const std::function<void(absl::StatusOr<Index>)>& answer) {
  Index served = IndexOfServed(record.environment().models, record.caller());
  if (request.ready()) {
    answer(std::move(served));
    return absl::OkStatus();
  }
  record.environment().manager.ListFolders(
      [answer, served, &models = record.environment().models,
       caller = record.caller()](const absl::StatusOr<core::RepositoryListing>& folders) {
        if (!folders.ok()) return answer(folders.status());
        answer(WithOthers(served, *folders, models, caller));
      });
  return absl::OkStatus();
}

absl::Status RepositoryModelLoad(CallRecord& record, const RepositoryModelLoadRequest& request,
                                 const std::function<void(absl::StatusOr<RepositoryModelLoadResponse>)>& answer) {
  LS_RETURN_IF_ERROR(RefuseParameters(request, ""));
  const std::string name = ModelNameOf(request);
  return LoadModel(record, {.name = name}, [answer, name](const absl::StatusOr<core::LoadedVersion>& loaded) {
    if (!loaded.ok()) return answer(loaded.status());
    RepositoryModelLoadResponse response;
    response.set_model_name(name);
    response.set_isloaded(true);
    answer(std::move(response));
  });
}

absl::Status RepositoryModelUnload(CallRecord& record, const RepositoryModelUnloadRequest& request,
                                   const std::function<void(absl::StatusOr<RepositoryModelUnloadResponse>)>& answer) {
  LS_RETURN_IF_ERROR(RefuseParameters(request, "unload_dependents"));  // models have no dependents here
  const std::string name = ModelNameOf(request);
  return UnloadModel(record, {.name = name}, [answer, name](const absl::Status& status) {
    if (!status.ok()) return answer(status);
    RepositoryModelUnloadResponse response;
    response.set_model_name(name);
    response.set_isunloaded(true);
    answer(std::move(response));
  });
}

// Rows of RPCs that this server does not implement, with the reason, and of RPCs whose answer is always empty.
template <typename Request, typename Response>
Rpc Refuse(const CallNames& names, const char* why) {
  return AnswerAtOnce<Request, Response>(
      names, [why](CallRecord&, const Request&) -> absl::StatusOr<Response> { return absl::UnimplementedError(why); });
}

template <typename Request, typename Response>
Rpc AnswerNothing(const CallNames& names) {
  return AnswerAtOnce<Request, Response>(
      names, [](CallRecord&, const Request&) -> absl::StatusOr<Response> { return Response(); });
}

constexpr RpcAccess kManage = {.scope = Scope::kManage};

CallNames Named(const char* method, RpcAccess access = {.scope = Scope::kInfer}) {
  return {kOpenInferenceVocabulary, method, access};
}

// All six share one name in messages, metrics and logs.
CallNames SharedMemory(const char* method) {
  return {kOpenInferenceVocabulary, method, {.scope = Scope::kInfer}, "SharedMemory"};
}

constexpr char kNoSharedMemory[] = "shared memory is not supported: requests and answers contain their tensors";
constexpr char kNoTraceSettings[] =
    "trace settings are options of the server, which are set at its start: --otlp-endpoint, --trace-sample-ratio";
constexpr char kNoLogSettings[] =
    "log settings are options of the server, which are set at its start: --log-level, --log-format, --log-requests";

}  // namespace

std::vector<Rpc> OpenInferenceRpcs() {
  using namespace inference;  // NOLINT(google-build-using-namespace)
  return {
      SideEffectFree(AnswerAtOnce<ServerLiveRequest, ServerLiveResponse>(
          Named("inference.GRPCInferenceService/ServerLive", kHealthAccess), IsServerLive)),
      SideEffectFree(AnswerAtOnce<ServerReadyRequest, ServerReadyResponse>(
          Named("inference.GRPCInferenceService/ServerReady", kHealthAccess), IsServerReady)),
      SideEffectFree(AnswerAtOnce<ModelReadyRequest, ModelReadyResponse>(
          Named("inference.GRPCInferenceService/ModelReady", kHealthAccess), IsModelReady)),
      SideEffectFree(AnswerAtOnce<ServerMetadataRequest, ServerMetadataResponse>(
          Named("inference.GRPCInferenceService/ServerMetadata"), longshort::server::ServerMetadata)),
      SideEffectFree(AnswerAtOnce<ModelMetadataRequest, ModelMetadataResponse>(
          Named("inference.GRPCInferenceService/ModelMetadata"), longshort::server::ModelMetadata)),
      SideEffectFree(AnswerAtOnce<ModelConfigRequest, ModelConfigResponse>(
          Named("inference.GRPCInferenceService/ModelConfig"), longshort::server::ModelConfig)),
      SideEffectFree(AnswerAtOnce<ModelStatisticsRequest, ModelStatisticsResponse>(
          Named("inference.GRPCInferenceService/ModelStatistics"), longshort::server::ModelStatistics)),
      AnswerLater<ModelInferRequest, ModelInferResponse>(Named("inference.GRPCInferenceService/ModelInfer"),
                                                         longshort::server::ModelInfer),
      Streaming<ModelInferRequest, ModelStreamInferResponse>(Named("inference.GRPCInferenceService/ModelStreamInfer"),
                                                             RpcKind::kBidirectional, MakeInferStream),
      SideEffectFree(AnswerLater<RepositoryIndexRequest, RepositoryIndexResponse>(
          Named("inference.GRPCInferenceService/RepositoryIndex"), longshort::server::RepositoryIndex)),
      AnswerLater<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
          Named("inference.GRPCInferenceService/RepositoryModelLoad", kManage), longshort::server::RepositoryModelLoad),
      AnswerLater<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
          Named("inference.GRPCInferenceService/RepositoryModelUnload", kManage),
          longshort::server::RepositoryModelUnload),
      AnswerNothing<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
          SharedMemory("inference.GRPCInferenceService/SystemSharedMemoryStatus")),
      Refuse<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
          SharedMemory("inference.GRPCInferenceService/SystemSharedMemoryRegister"), kNoSharedMemory),
      Refuse<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
          SharedMemory("inference.GRPCInferenceService/SystemSharedMemoryUnregister"), kNoSharedMemory),
      AnswerNothing<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
          SharedMemory("inference.GRPCInferenceService/CudaSharedMemoryStatus")),
      Refuse<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
          SharedMemory("inference.GRPCInferenceService/CudaSharedMemoryRegister"), kNoSharedMemory),
      Refuse<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
          SharedMemory("inference.GRPCInferenceService/CudaSharedMemoryUnregister"), kNoSharedMemory),
      Refuse<TraceSettingRequest, TraceSettingResponse>(Named("inference.GRPCInferenceService/TraceSetting"),
                                                        kNoTraceSettings),
      Refuse<LogSettingsRequest, LogSettingsResponse>(Named("inference.GRPCInferenceService/LogSettings"),
                                                      kNoLogSettings),
  };
}

}  // namespace longshort::server
