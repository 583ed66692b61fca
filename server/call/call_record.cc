#include "server/call/call_record.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/random_number.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/access/access_table.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

// A client cancels a call when its deadline passes, and its clock started slightly earlier. So a cancellation this
// close to the deadline counts as the deadline.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(100);

// Fields of a log line.
constexpr size_t kMaxFields = 17;
// Log lines a second of calls that end with the same code, other than OK.
constexpr int64_t kFailedCalls = 100;

}  // namespace

absl::Status CheckModelReference(const ModelReference& reference, const CallNames& names) {
  if (reference.version < 0) return FieldError(names.Of("model.version"), reference.version, "at least 0");
  return CheckFieldRange([&] { return absl::StrCat("number of bytes of ", names.Of("model.name")); },
                         static_cast<int64_t>(reference.name.size()), 0, kMaxModelNameBytes);
}

CallRecord::CallRecord(const CallEnvironment& environment, const CallNames& names, CallOrigin origin,
                       std::function<UnreadAnswers::Owner()> owner)
    : environment_(environment),
      names_(names),
      arrived_(MonotonicNow()),
      engine_context_(std::move(origin.context)),
      trace_(environment.tracer, names, std::move(origin.trace), arrived_),
      peer_(std::move(origin.peer)),
      max_answer_bytes_(origin.answer_bytes),
      answers_(*environment.answers, std::move(owner)),
      origin_status_(std::move(origin.status)),
      credentials_(std::move(origin.credentials)),
      named_client_(engine_context_.client) {}

CallRecord::CallRecord(const CallRecord& call, const CallNames& names, std::string id)
    : environment_(call.environment_),
      names_(names),
      arrived_(MonotonicNow()),
      trace_(call.trace_, names, arrived_),
      peer_(call.peer_),
      max_answer_bytes_(call.max_answer_bytes_),
      answers_(*call.environment_.answers, call.answers_.owner()),
      caller_(call.caller_),
      named_client_(call.named_client_),
      within_call_(true) {
  engine_context_.id = std::move(id);
  engine_context_.client = call.engine_context_.client;
  engine_context_.priority = call.engine_context_.priority;
  engine_context_.deadline = call.engine_context_.deadline;
}

CallRecord::~CallRecord() {
  if (inside_) environment_.gate.Leave(unavailable_);
}

absl::Status CallRecord::Admit() {
  inside_ = !names_.observes() && environment_.gate.Enter();
  if (!inside_ && !names_.observes()) return core::ServerIsStopping();
  if (within_call_) {
    Identity* const identity = caller_.identity();
    return identity == nullptr ? absl::OkStatus() : identity->TakeCall(MonotonicNow());
  }
  const Credentials credentials = std::exchange(credentials_, {});
  if (environment_.access != nullptr) {
    LS_RETURN_IF_ERROR(Identify(credentials));
  } else if (!environment_.trusts_client_ids) {
    engine_context_.client = ClientAddress(peer_);
  }
  return origin_status_;
}

absl::Status CallRecord::Identify(const Credentials& credentials) {
  engine_context_.client.clear();
  const absl::Time now = MonotonicNow();
  LS_ASSIGN_OR_RETURN(caller_, environment_.access->Identify(credentials, names_.access(), now));
  if (const Identity* identity = caller_.identity(); identity != nullptr) engine_context_.client = identity->name();
  LS_RETURN_IF_ERROR(caller_.CheckPriority(engine_context_.priority));
  return AccessControl::Admit(caller_, names_.rpc(), names_.access(), now);
}

absl::Status CallRecord::CheckMayUse(const std::string& model) const {
  if (caller_.MayUse(model)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("identity ", caller_.identity()->name(), " may not use model ", model, " with this credential"));
}

SessionOwner CallRecord::session_owner() const {
  const Identity* const identity = caller_.identity();
  return {.identity = identity == nullptr ? std::nullopt : std::optional(identity->name()), .client = named_client_};
}

absl::StatusOr<std::shared_ptr<const core::ServedModel>> CallRecord::FindModel(const ModelReference& reference) {
  LS_RETURN_IF_ERROR(CheckModelReference(reference, names_));
  absl::StatusOr<std::shared_ptr<core::ServedModel>> found =
      caller_.MayUseAllModels() ? environment_.models.Find(reference.name, reference.version)
                                : FindAmongAllowed(reference);
  if (found.ok()) {
    model_ = (*found)->name;
    version_ = (*found)->version;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<core::ServedModel>> CallRecord::FindAmongAllowed(const ModelReference& reference) const {
  if (!reference.name.empty()) LS_RETURN_IF_ERROR(CheckMayUse(reference.name));
  std::set<std::string> allowed;
  for (const std::shared_ptr<core::ServedModel>& served : environment_.models.List()) {
    if (caller_.MayUse(served->name)) allowed.insert(served->name);
  }
  const std::string there_are = absl::StrCat("; identity ", caller_.identity()->name(), " may use ",
                                             allowed.empty() ? "no loaded model" : absl::StrJoin(allowed, ", "));
  if (reference.name.empty() && allowed.size() == 1) {
    return environment_.models.Find(*allowed.begin(), reference.version);
  }
  if (reference.name.empty()) return absl::InvalidArgumentError(absl::StrCat("a model must be named", there_are));
  if (allowed.count(reference.name) > 0) return environment_.models.Find(reference.name, reference.version);
  return absl::NotFoundError(absl::StrCat("there is no model ", reference.name, there_are));
}

absl::StatusOr<std::shared_ptr<const core::ServedLanguageModel>> CallRecord::FindLanguageModel(
    const ModelReference& reference) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedModel> found, FindModel(reference));
  if (const core::ServedLanguageModel* model = found->language_model(); model != nullptr) return {{found, model}};
  return absl::FailedPreconditionError(
      absl::StrCat(names_.rpc(), " needs a language model; model ", found->name, " is a classifier"));
}

absl::StatusOr<std::shared_ptr<const core::ServedClassifier>> CallRecord::FindClassifier(
    const ModelReference& reference) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedModel> found, FindModel(reference));
  if (const core::ServedClassifier* classifier = found->classifier(); classifier != nullptr)
    return {{found, classifier}};
  return absl::FailedPreconditionError(
      absl::StrCat(names_.rpc(), " needs a classifier; model ", found->name, " is a language model"));
}

absl::Status CallRecord::CheckTokenLimit() const {
  Identity* const identity = caller_.identity();
  return identity == nullptr ? absl::OkStatus() : identity->CheckTokens(MonotonicNow());
}

void CallRecord::ChargeTokens(int64_t tokens) const {
  if (Identity* const identity = caller_.identity(); identity != nullptr) identity->TakeTokens(tokens, MonotonicNow());
}

void CallRecord::CountIn(std::shared_ptr<core::ServingStatistics> statistics, const char* operation) {
  statistics_ = std::move(statistics);
  trace_.Set("gen_ai.operation.name", operation);
  trace_.Set("gen_ai.provider.name", "longshort");
}

void CallRecord::NoteWork() {
  ++works_;
  if (statistics_ != nullptr) worked_ = MonotonicNow();
}

void CallRecord::AddWork(int64_t index, const core::GenerationSummary& summary, bool complete) {
  trace_.AddGeneration(index, summary, complete);
  AddTokens(summary.prompt_tokens, summary.generated_tokens, summary.timings);
}

void CallRecord::AddTokens(int64_t prompt_tokens, int64_t generated_tokens, const core::RequestTimings& timings) {
  NoteWork();
  prompt_tokens_ += prompt_tokens;
  generated_tokens_ += generated_tokens;
  timings_.queue = std::max(timings_.queue, timings.queue);
  timings_.prefill = std::max(timings_.prefill, timings.prefill);
  timings_.decode = std::max(timings_.decode, timings.decode);
}

void CallRecord::AddItem(int64_t tokens, const core::ClassificationTimings& timings,
                         const std::optional<DocumentArrival>& arrival) {
  trace_.AddItem(works_, tokens, timings, arrival);
  NoteWork();
  prompt_tokens_ += tokens;
  ++items_;
  item_timings_.preparation = std::max(item_timings_.preparation, timings.preparation);
  item_timings_.queue = std::max(item_timings_.queue, timings.queue);
  item_timings_.run = std::max(item_timings_.run, timings.run);
}

void CallRecord::AddWork(const ScoredText& text, const std::optional<DocumentArrival>& arrival) {
  if (const auto* score = std::get_if<TextScore>(&text.result); score != nullptr) {
    trace_.AddScore(works_, text.cached_tokens, score->timings, arrival);
    AddTokens(text.tokens, 0, score->timings);
  } else if (const auto* embedding = std::get_if<Embedding>(&text.result); embedding != nullptr) {
    AddItem(text.tokens, embedding->timings, arrival);
  } else {
    AddItem(text.tokens, std::get<TextClassification>(text.result).classification.timings, arrival);
  }
}

void CallRecord::CancelSlowReader() {
  slow_reader_ = true;
  environment_.metrics.CountSlowReader(names_.rpc());
  Cancel();
}

absl::Status CallRecord::Finish(const absl::Status& work_status) {
  const absl::Time now = MonotonicNow();
  absl::Status status =
      slow_reader_ ? absl::CancelledError(absl::StrCat("the client read nothing for ",
                                                       absl::FormatDuration(environment_.slow_reader_timeout),
                                                       " (--slow-reader-timeout) while an answer waited for it"))
                   : work_status;
  absl::StatusCode code = status.code();
  if (code == absl::StatusCode::kCancelled && !slow_reader_ && now >= engine_context_.deadline - kDeadlineSlack) {
    code = absl::StatusCode::kDeadlineExceeded;
  }
  unavailable_ = code == absl::StatusCode::kUnavailable;
  if (!names_.observes()) {
    environment_.metrics.CountRequest({.rpc = names_.rpc(), .model = model_, .version = version_}, code,
                                      now - arrived_);
    if (const Identity* identity = caller_.identity(); identity != nullptr) {
      environment_.metrics.CountIdentity(identity->metric_label(), code, prompt_tokens_ + generated_tokens_);
    }
  }
  if (statistics_ != nullptr) AddToStatistics(code, now);
  const bool our_fault = code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown;
  // Refusals are what an operator can change: the load, the limits, the tokens.
  const bool refused = code == absl::StatusCode::kResourceExhausted || code == absl::StatusCode::kUnavailable ||
                       code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied;
  const LogLevel usual = names_.observes() ? LogLevel::kDebug : refused ? LogLevel::kWarning : LogLevel::kInfo;
  const auto one_of = static_cast<uint64_t>(environment_.log_requests);
  const auto fields = [&] { return FieldsOf(status, code, now - arrived_); };
  if (code != absl::StatusCode::kOk) {
    // A client can make any number of calls that fail. Those of strangers do not leave out the lines of others.
    const bool is_stranger = environment_.access != nullptr && caller_.identity() == nullptr;
    environment_.log.LogLimited(
        absl::StrCat(is_stranger ? "request of a stranger " : "request ", absl::StatusCodeToString(code)),
        is_stranger ? 1 : kFailedCalls, now, our_fault ? LogLevel::kError : usual, "request", fields);
  } else if (one_of == 1 || (one_of > 0 && RandomNumber() % one_of == 0)) {
    environment_.log.Log(usual, "request", fields());
  }
  if (code != status.code()) status = absl::Status(code, status.message());
  trace_.End({.status = status,
              .time = now,
              .id = engine_context_.id,
              .model = {.name = model_, .version = version_},
              .prompt_tokens = prompt_tokens_,
              .generated_tokens = generated_tokens_,
              .parts = works_});
  return status;
}

void CallRecord::AddToStatistics(absl::StatusCode code, absl::Time now) const {
  const absl::Duration total = now - arrived_;
  if (code != absl::StatusCode::kOk) return statistics_->CountFailure(total, ToWallClock(now));
  const bool items = items_ > 0;
  statistics_->CountAnswer({.total = total,
                            .queue = items ? item_timings_.queue : timings_.queue,
                            .run = items ? item_timings_.run : timings_.prefill + timings_.decode,
                            .output = now - worked_,
                            .items = works_},
                           ToWallClock(now));
}

LogFields CallRecord::FieldsOf(const absl::Status& status, absl::StatusCode code, absl::Duration duration) const {
  LogFields fields;
  fields.reserve(kMaxFields);
  fields.emplace_back("id", engine_context_.id);
  fields.emplace_back("rpc", std::string(names_.rpc()));
  fields.emplace_back("model", model_);
  fields.emplace_back("version", version_);
  fields.emplace_back("code", absl::StatusCodeToString(code));
  fields.emplace_back("seconds", absl::ToDoubleSeconds(duration));
  if (const Identity* identity = caller_.identity(); identity != nullptr) {
    fields.emplace_back("identity", identity->name());
  }
  if (!named_client_.empty()) fields.emplace_back("client", named_client_);
  if (!status.ok()) fields.emplace_back("peer", peer_);
  trace_.AppendTo(fields);
  if (items_ > 0) {
    fields.emplace_back("items", items_);
    fields.emplace_back("prompt_tokens", prompt_tokens_);
    fields.emplace_back("preparation_seconds", absl::ToDoubleSeconds(item_timings_.preparation));
    fields.emplace_back("queue_seconds", absl::ToDoubleSeconds(item_timings_.queue));
    fields.emplace_back("run_seconds", absl::ToDoubleSeconds(item_timings_.run));
  } else if (prompt_tokens_ > 0) {
    fields.emplace_back("prompt_tokens", prompt_tokens_);
    fields.emplace_back("generated_tokens", generated_tokens_);
    fields.emplace_back("queue_seconds", absl::ToDoubleSeconds(timings_.queue));
    fields.emplace_back("prefill_seconds", absl::ToDoubleSeconds(timings_.prefill));
    fields.emplace_back("decode_seconds", absl::ToDoubleSeconds(timings_.decode));
  }
  if (!status.ok()) fields.emplace_back("error", std::string(status.message()));
  return fields;
}

}  // namespace longshort::server
