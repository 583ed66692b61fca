#include "server/rpc/close_session.h"

#include <memory>

#include "base/status_macros.h"
#include "server/requests/session_reader.h"

namespace longshort {

absl::StatusOr<v1::CloseSessionResponse> CloseSession(CallRecord& record, const v1::CloseSessionRequest& request) {
  LS_RETURN_IF_ERROR(CheckSessionId("session_id", request.session_id()));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedLanguageModel> model,
                      record.FindLanguageModel(request.model()));
  LS_RETURN_IF_ERROR(
      model->engine->CloseSession({.client = record.engine_context().client, .id = request.session_id()}));
  return v1::CloseSessionResponse();
}

}  // namespace longshort
