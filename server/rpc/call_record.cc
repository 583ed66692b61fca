#include "server/rpc/call_record.h"

#include <grpc/grpc.h>

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
#include "server/requests/call_metadata.h"
#include "server/requests/model_selector.h"
#include "server/rpc/refusal_details.h"

namespace longshort {
namespace {

// A client cancels a call when its deadline passes, and its clock began to run a little before ours: a cancellation so
// close to the deadline was the deadline.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(100);

}  // namespace

CallRecord::CallRecord(const CallEnvironment& environment, const char* rpc, grpc::CallbackServerContext& context)
    : environment_(environment), rpc_(rpc), arrived_(MonotonicNow()), context_(context) {
  CallMetadata metadata = ReadCallMetadata(context);
  engine_context_ = std::move(metadata.context);
  metadata_status_ = std::move(metadata.status);
  context.AddInitialMetadata("x-request-id", engine_context_.id);
}

CallRecord::~CallRecord() {
  if (inside_) environment_.gate.Leave(unavailable_);
}

absl::Status CallRecord::Admit() {
  inside_ = environment_.gate.Enter();
  return inside_ ? metadata_status_ : absl::UnavailableError("the server is stopping");
}

absl::StatusOr<std::shared_ptr<const ServedModel>> CallRecord::FindModel(const v1::ModelSelector& selector) {
  LS_RETURN_IF_ERROR(CheckModelSelector(selector));
  absl::StatusOr<std::shared_ptr<ServedModel>> found = environment_.models.Find(selector.name(), selector.version());
  if (found.ok()) {
    model_ = (*found)->name;
    version_ = (*found)->version;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<const ServedLanguageModel>> CallRecord::FindLanguageModel(
    const v1::ModelSelector& selector) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> found, FindModel(selector));
  if (const ServedLanguageModel* model = found->language_model(); model != nullptr) return {{found, model}};
  return absl::FailedPreconditionError(
      absl::StrCat(rpc_, " needs a language model; model ", found->name, " is a classifier"));
}

absl::StatusOr<std::shared_ptr<const ServedClassifier>> CallRecord::FindClassifier(const v1::ModelSelector& selector) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> found, FindModel(selector));
  if (const ServedClassifier* classifier = found->classifier(); classifier != nullptr) return {{found, classifier}};
  return absl::FailedPreconditionError(
      absl::StrCat(rpc_, " needs a classifier; model ", found->name, " is a language model"));
}

v1::ModelSelector CallRecord::answering_model() const {
  v1::ModelSelector selector;
  selector.set_name(model_);
  selector.set_version(version_);
  return selector;
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
  if (const auto* timings = std::get_if<RequestTimings>(&text.timings); timings != nullptr) {
    AddWork(text.tokens, 0, *timings);
  } else {
    AddWork(text.tokens, std::get<ClassificationTimings>(text.timings));
  }
}

void CallRecord::CancelSlowReader() {
  slow_reader_ = true;
  environment_.metrics.CountSlowReader(rpc_);
  Cancel();
  context_.TryCancel();
}

std::shared_ptr<PauseWatch> CallRecord::WatchAnswer(std::weak_ptr<const void> owner) {
  // Once the call is finished, gRPC may destroy its context at any time, but not the call while somebody holds it.
  grpc_call_ref(context_.c_call());
  const std::shared_ptr<grpc_call> call(context_.c_call(), grpc_call_unref);
  return PauseWatch::Start(environment_.slow_reader_timeout, [this, call, owner = std::move(owner)] {
    const std::shared_ptr<const void> keep = owner.lock();
    if (keep == nullptr) return;
    environment_.metrics.CountSlowReader(rpc_);
    environment_.log.Info("cancelled: the client did not take its answer within --slow-reader-timeout",
                          {{"id", engine_context_.id}, {"rpc", std::string(rpc_)}});
    grpc_call_cancel(call.get(), nullptr);
  });
}

grpc::Status CallRecord::Finish(const absl::Status& work_status) {
  const absl::Time now = MonotonicNow();
  const absl::Status status =
      slow_reader_ ? absl::CancelledError(absl::StrCat("the client took nothing for ",
                                                       absl::FormatDuration(environment_.slow_reader_timeout),
                                                       " (--slow-reader-timeout) of what waited for it"))
                   : work_status;
  absl::StatusCode code = status.code();
  if (code == absl::StatusCode::kCancelled && !slow_reader_ && now >= engine_context_.deadline - kDeadlineSlack) {
    code = absl::StatusCode::kDeadlineExceeded;
  }
  unavailable_ = code == absl::StatusCode::kUnavailable;
  environment_.metrics.CountRequest(rpc_, model_, code, now - arrived_);

  LogFields fields = {{"id", engine_context_.id}, {"rpc", std::string(rpc_)},
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
  const std::string message(status.message());
  if (!status.ok()) fields.emplace_back("error", message);
  const bool our_fault = code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown;
  environment_.log.Log(our_fault ? LogLevel::kError : LogLevel::kInfo, "request", std::move(fields));
  const std::optional<Refusal> refusal = GetRefusal(status);
  if (!refusal.has_value()) return grpc::Status(static_cast<grpc::StatusCode>(code), message);
  context_.AddTrailingMetadata("longshort-queue-depth", absl::StrCat(refusal->queue_depth));
  return grpc::Status(static_cast<grpc::StatusCode>(code), message, RefusalDetails(status, *refusal));
}

}  // namespace longshort
