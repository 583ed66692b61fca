#include "server/admission/call_record.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/metrics/code_name.h"

namespace longshort {
namespace {

// A client cancels a call when its deadline passes, and its clock began to run a little before ours: a cancellation so
// close to the deadline was the deadline.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(100);

}  // namespace

CallRecord::CallRecord(const CallEnvironment& environment, const CallNames& names, CallOrigin origin)
    : environment_(environment),
      names_(names),
      arrived_(MonotonicNow()),
      engine_context_(std::move(origin.context)),
      origin_status_(std::move(origin.status)) {}

CallRecord::~CallRecord() {
  if (inside_) environment_.gate.Leave(unavailable_);
}

absl::Status CallRecord::Admit() {
  inside_ = environment_.gate.Enter();
  return inside_ ? origin_status_ : absl::UnavailableError("the server is stopping");
}

absl::StatusOr<std::shared_ptr<const ServedModel>> CallRecord::FindModel(const ModelReference& reference) {
  LS_RETURN_IF_ERROR(CheckModelReference(reference, names_));
  absl::StatusOr<std::shared_ptr<ServedModel>> found = environment_.models.Find(reference.name, reference.version);
  if (found.ok()) {
    model_ = (*found)->name;
    version_ = (*found)->version;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<const ServedLanguageModel>> CallRecord::FindLanguageModel(
    const ModelReference& reference) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> found, FindModel(reference));
  if (const ServedLanguageModel* model = found->language_model(); model != nullptr) return {{found, model}};
  return absl::FailedPreconditionError(
      absl::StrCat(names_.rpc(), " needs a language model; model ", found->name, " is a classifier"));
}

absl::StatusOr<std::shared_ptr<const ServedClassifier>> CallRecord::FindClassifier(const ModelReference& reference) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> found, FindModel(reference));
  if (const ServedClassifier* classifier = found->classifier(); classifier != nullptr) return {{found, classifier}};
  return absl::FailedPreconditionError(
      absl::StrCat(names_.rpc(), " needs a classifier; model ", found->name, " is a language model"));
}

void CallRecord::AddWork(int64_t prompt_tokens, int64_t generated_tokens, const RequestTimings& timings) {
  prompt_tokens_ += prompt_tokens;
  generated_tokens_ += generated_tokens;
  timings_.queue = std::max(timings_.queue, timings.queue);
  timings_.prefill = std::max(timings_.prefill, timings.prefill);
  timings_.decode = std::max(timings_.decode, timings.decode);
}

void CallRecord::AddWork(int64_t tokens, const ClassificationTimings& timings) {
  prompt_tokens_ += tokens;
  ++items_;
  item_timings_.preparation = std::max(item_timings_.preparation, timings.preparation);
  item_timings_.queue = std::max(item_timings_.queue, timings.queue);
  item_timings_.run = std::max(item_timings_.run, timings.run);
}

void CallRecord::AddWork(const ScoredText& text) {
  if (const auto* score = std::get_if<TextScore>(&text.result); score != nullptr) {
    AddWork(text.tokens, 0, score->timings);
  } else {
    AddWork(text.tokens, std::get<TextClassification>(text.result).classification.timings);
  }
}

void CallRecord::CancelSlowReader() {
  slow_reader_ = true;
  environment_.metrics.CountSlowReader(names_.rpc());
  Cancel();
}

absl::Status CallRecord::Finish(const absl::Status& work_status) {
  const absl::Time now = MonotonicNow();
  absl::Status status = slow_reader_
                            ? absl::CancelledError(absl::StrCat("the client took nothing for ",
                                                                absl::FormatDuration(environment_.slow_reader_timeout),
                                                                " (--slow-reader-timeout) of what waited for it"))
                            : work_status;
  absl::StatusCode code = status.code();
  if (code == absl::StatusCode::kCancelled && !slow_reader_ && now >= engine_context_.deadline - kDeadlineSlack) {
    code = absl::StatusCode::kDeadlineExceeded;
  }
  unavailable_ = code == absl::StatusCode::kUnavailable;
  environment_.metrics.CountRequest(names_.rpc(), model_, code, now - arrived_);

  LogFields fields = {{"id", engine_context_.id}, {"rpc", std::string(names_.rpc())},
                      {"model", model_},          {"version", version_},
                      {"code", CodeName(code)},   {"seconds", absl::ToDoubleSeconds(now - arrived_)}};
  if (!engine_context_.client.empty()) fields.emplace_back("client", engine_context_.client);
  if (items_ > 0) {
    fields.insert(fields.end(), {{"items", items_},
                                 {"prompt_tokens", prompt_tokens_},
                                 {"preparation_seconds", absl::ToDoubleSeconds(item_timings_.preparation)},
                                 {"queue_seconds", absl::ToDoubleSeconds(item_timings_.queue)},
                                 {"run_seconds", absl::ToDoubleSeconds(item_timings_.run)}});
  } else if (prompt_tokens_ > 0) {
    fields.insert(fields.end(), {{"prompt_tokens", prompt_tokens_},
                                 {"generated_tokens", generated_tokens_},
                                 {"queue_seconds", absl::ToDoubleSeconds(timings_.queue)},
                                 {"prefill_seconds", absl::ToDoubleSeconds(timings_.prefill)},
                                 {"decode_seconds", absl::ToDoubleSeconds(timings_.decode)}});
  }
  if (!status.ok()) fields.emplace_back("error", std::string(status.message()));
  const bool our_fault = code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown;
  environment_.log.Log(our_fault ? LogLevel::kError : LogLevel::kInfo, "request", std::move(fields));
  if (code == status.code()) return status;
  return absl::Status(code, status.message());
}

}  // namespace longshort
