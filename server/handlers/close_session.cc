#include "server/handlers/close_session.h"

#include <memory>

#include "base/status_macros.h"
#include "server/handlers/session_check.h"

namespace longshort {

absl::Status CloseSession(CallRecord& record, const ModelReference& model, const std::string& session_id) {
  LS_RETURN_IF_ERROR(CheckSessionId(session_id, record.names()));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedLanguageModel> served, record.FindLanguageModel(model));
  return served->engine->CloseSession({.client = record.engine_context().client, .id = record.SessionIdOf(session_id)});
}

}  // namespace longshort
