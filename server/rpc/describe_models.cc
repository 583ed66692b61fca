#include "server/rpc/describe_models.h"

#include <memory>

#include "base/status_macros.h"
#include "server/requests/answers.h"

namespace longshort {

v1::ListModelsResponse ListModels(const CallEnvironment& environment) {
  v1::ListModelsResponse response;
  for (const std::shared_ptr<ServedModel>& model : environment.models.List()) {
    v1::Model& message = *response.add_models() = DescribeModel(*model, environment.limits);
    if (message.has_classifier()) message.mutable_classifier()->clear_labels();
  }
  return response;
}

absl::StatusOr<v1::Model> GetModel(const RequestLimits& limits, CallRecord& record,
                                   const v1::GetModelRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> model, record.FindModel(request.model()));
  return DescribeModel(*model, limits);
}

}  // namespace longshort
