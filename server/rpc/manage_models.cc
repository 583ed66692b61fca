#include "server/rpc/manage_models.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "longshort/v1/models.pb.h"
#include "server/lifecycle/model_manager.h"
#include "server/requests/answers.h"
#include "server/requests/model_selector.h"
#include "server/rpc/unary_call.h"

namespace longshort {
namespace {

absl::Status CheckMayManage(const CallEnvironment& environment, const char* rpc) {
  if (environment.model_control) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(rpc, " changes what everybody is served: the server must be started with --model-control"));
}

// Unlike other calls these name a model even where there is only one.
absl::Status CheckNamedModel(const v1::ModelSelector& selector) {
  if (selector.name().empty()) return absl::InvalidArgumentError("model.name is empty; it must name a model");
  return CheckModelSelector(selector);
}

class LoadModelCall final : public UnaryCall {
 public:
  LoadModelCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : UnaryCall(environment, "LoadModel", context, response), environment_(environment) {}

 private:
  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const v1::LoadModelRequest request, ParseMessage<v1::LoadModelRequest>(bytes));
    LS_RETURN_IF_ERROR(CheckMayManage(environment_, "LoadModel"));
    LS_RETURN_IF_ERROR(CheckNamedModel(request.model()));
    environment_.manager.LoadVersion(request.model().name(), request.model().version(),
                                     [this, keep = self()](absl::StatusOr<std::shared_ptr<ServedModel>> loaded) {
                                       if (!loaded.ok()) return FinishWithError(loaded.status());
                                       FinishWith(DescribeModel(**loaded, environment_.limits));
                                     });
    return absl::OkStatus();
  }

  const CallEnvironment& environment_;
};

class UnloadModelCall final : public UnaryCall {
 public:
  UnloadModelCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : UnaryCall(environment, "UnloadModel", context, response), environment_(environment) {}

 private:
  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const v1::UnloadModelRequest request, ParseMessage<v1::UnloadModelRequest>(bytes));
    LS_RETURN_IF_ERROR(CheckMayManage(environment_, "UnloadModel"));
    LS_RETURN_IF_ERROR(CheckNamedModel(request.model()));
    environment_.manager.Unload(request.model().name(), request.model().version(),
                                [this, keep = self()](const absl::Status& status) {
                                  if (!status.ok()) return FinishWithError(status);
                                  FinishWith(v1::UnloadModelResponse());
                                });
    return absl::OkStatus();
  }

  const CallEnvironment& environment_;
};

}  // namespace

grpc::ServerUnaryReactor* LoadModel(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<LoadModelCall>(environment, context, request, response);
}

grpc::ServerUnaryReactor* UnloadModel(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<UnloadModelCall>(environment, context, request, response);
}

}  // namespace longshort
