#include "server/handlers/close_session.h"

#include <memory>

#include "base/status_macros.h"
#include "server/handlers/session_check.h"

namespace longshort {

absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call) {
  LS_RETURN_IF_ERROR(
      CheckSession({.id = call.session_id, .expected_tokens = call.closing.expected_tokens}, record.names()));
  LS_ASSIGN_OR_RETURN(const SessionKey key, FindSessionKey(record, call.owner, call.session_id));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedLanguageModel> model, record.FindLanguageModel(call.model));
  return model->engine->CloseSession(key, call.closing);
}

}  // namespace longshort
