#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/handlers.h"
#include "server/handlers/session_check.h"
#include "server/handlers/text_batch.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {
namespace {

// Checks the session that the only text continues, if the call names one.
absl::Status CheckSessionOf(const ScoreCall& call, const core::ServedModel& model, const CallNames& names) {
  if (!call.session.has_value()) return absl::OkStatus();
  if (model.language_model() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of("session"), " is set; it must be unset, because the model is a classifier"));
  }
  if (call.texts.size() > 1) {
    return FieldError(absl::StrCat("number of ", names.Of("inputs")), call.texts.size(),
                      "1 with a session, which has a single continuation");
  }
  return CheckSession(*call.session, names);
}

}  // namespace

absl::Status ScoreText(CallRecord& record, const ScoreCall& call,
                       std::function<void(absl::StatusOr<ScoreResult>)> done) {
  const RequestLimits& limits = record.environment().limits;
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedModel> model, record.FindModel(call.model));
  record.CountIn(model->statistics(), OperationOfTexts(*model, call.options));
  LS_RETURN_IF_ERROR(CheckSessionOf(call, *model, names));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TextScorer> scorer, TextScorer::Make(model, call.options, limits, names));
  const int64_t max_in_queue = model->max_items();
  ScoreResult result;
  result.served = std::move(model);
  return RunTexts(record, call, scorer, max_in_queue, std::move(result), std::move(done));
}

}  // namespace longshort::server
