// One call from arrival to end: its admission by the gate, its model, its metrics and its log line. Independent of the
// protocol: a protocol's code reads the caller's data and sends the status that Finish returns.
//
// Thread: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry/served_model.h"
#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_requests.h"
#include "core/requests/request_context.h"
#include "core/requests/serving_statistics.h"
#include "server/access/access_table.h"
#include "server/call/call_environment.h"
#include "server/call/traced_call.h"
#include "server/call/unread_answers.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"

namespace longshort::server {

// Limits of the bytes of an answer's classes and logits, embeddings, or pieces and places of tokens. A gRPC client
// accepts 4 MiB by default. By HTTP, clients have no limit, and 2,048 embeddings of 4,096 numbers fit.
inline constexpr int64_t kGrpcAnswerBytes = int64_t{3} << 20, kHttpAnswerBytes = int64_t{33} << 20;

// The caller and the deadline, as read from the call's metadata.
struct CallOrigin {
  // Valid whatever `status` is. The client is the unverified name that the caller gives itself.
  core::RequestContext context;
  // The client's address, or a proxy's.
  std::string peer;
  // The size of the call's metadata, which gRPC keeps as long as the call.
  int64_t metadata_bytes = 0;
  int64_t answer_bytes = kGrpcAnswerBytes;
  // Proof of the caller's identity.
  Credentials credentials;
  TraceOrigin trace;
  // INVALID_ARGUMENT with the invalid part, its value and its rule.
  absl::Status status;
};

// Messages and logs repeat a model's name, so its length is limited.
inline constexpr int64_t kMaxModelNameBytes = 256;
// Errors: INVALID_ARGUMENT if `reference` cannot name a model.
absl::Status CheckModelReference(const ModelReference& reference, const CallNames& names);

class CallRecord {
 public:
  // `owner` is for the account of the call's answers.
  CallRecord(const CallEnvironment& environment, const CallNames& names, CallOrigin origin,
             std::function<UnreadAnswers::Owner()> owner);
  // A request within `call`, which was admitted: a call of its own with the same caller, priority and deadline, but
  // with its own `names` and `id`.
  CallRecord(const CallRecord& call, const CallNames& names, std::string id);
  // Leaves the gate.
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // Admits and identifies the caller. The engines' client is the identity; without authentication the client's address,
  // or the name that it gives itself if CallEnvironment::trusts_client_ids. Otherwise that name only separates
  // sessions. Errors: UNAVAILABLE if the gate is closed; those of AccessControl::Identify and Admit, and of
  // Caller::CheckPriority; the origin's status.
  absl::Status Admit();
  const Caller& caller() const { return caller_; }
  // Finds the model that the call names, and uses it for the call's metrics and log line. Errors: those of
  // CheckModelReference, CheckMayUse and ModelRegistry::Find. A caller with limited access sees only allowed models.
  absl::StatusOr<std::shared_ptr<const core::ServedModel>> FindModel(const ModelReference& reference);
  // As FindModel, for calls that need one kind of model. The pointer keeps the whole served model. Errors: also
  // FAILED_PRECONDITION if the model is of the other kind.
  absl::StatusOr<std::shared_ptr<const core::ServedLanguageModel>> FindLanguageModel(const ModelReference& reference);
  absl::StatusOr<std::shared_ptr<const core::ServedClassifier>> FindClassifier(const ModelReference& reference);
  // Errors: PERMISSION_DENIED if the caller may not use models of this name, whether or not one exists.
  absl::Status CheckMayUse(const std::string& model) const;

  // The owner of the caller's sessions. Part of each session's key, so a caller cannot reach another owner's sessions.
  SessionOwner session_owner() const;

  // Marks the call as an inference: its end counts in the model's statistics. `operation`, a literal, is the
  // operation's name in its trace.
  void CountIn(std::shared_ptr<core::ServingStatistics> statistics, const char* operation);

  // Name and version of the model found.
  ModelReference answering_model() const { return {.name = model_, .version = version_}; }

  const CallEnvironment& environment() const { return environment_; }
  const CallNames& names() const { return names_; }
  // kGrpcAnswerBytes or kHttpAnswerBytes.
  int64_t max_answer_bytes() const { return max_answer_bytes_; }
  // For the engine: id, client, priority, deadline, and the flags of Cancel() and PauseAbove().
  const core::RequestContext& engine_context() const { return engine_context_; }
  // Set a priority, or shorten the deadline to `longest` after the call's arrival, as the call's message says. Call
  // them before the work begins. Errors: those of Caller::CheckPriority.
  absl::Status SetPriority(core::Priority priority) {
    engine_context_.priority = priority;
    return caller_.CheckPriority(priority);
  }
  void EndWithin(absl::Duration longest) {
    engine_context_.deadline = std::min(engine_context_.deadline, arrived_ + longest);
  }
  // Thread-safe, from any thread.
  void Cancel() { engine_context_.cancelled->store(true); }
  // Pauses the work while more than `most` bytes of its output wait for the client to read. It resumes while a quarter
  // of that still waits, so that the reader need not wait for the engine. Thread-safe, from any thread.
  void PauseAbove(size_t most, size_t waiting_bytes) {
    if (waiting_bytes > most) engine_context_.paused->store(true);
    if (waiting_bytes <= most / 4) engine_context_.paused->store(false);
  }
  // Cancels the work, because the client read nothing for --slow-reader-timeout. Finish, which must be called later,
  // returns that reason whatever its argument.
  void CancelSlowReader();

  // Whether the caller's identity may start more work within this call. Errors: RESOURCE_EXHAUSTED with a Refusal.
  // Thread-safe.
  absl::Status CheckTokenLimit() const;
  // Counts tokens read or generated for the call against the identity's limit. Thread-safe.
  void ChargeTokens(int64_t tokens) const;

  // The account of the call's answers.
  UnreadAnswers::Account& answers() { return answers_; }
  // An empty share of what the caller may hold of CallEnvironment::message_memory.
  Budget::Share MemoryShare() const { return Budget::Share(environment_.message_memory->Of(engine_context_.client)); }
  // Runs `task` by a thread of CallEnvironment::work, in the caller's turn and without a limit.
  void RunInPool(absl::AnyInvocable<void()> task) const {
    environment_.work->Submit({.client = engine_context_.client}, core::FairPool::Timed(std::move(task)));
  }

  // Adds completion `index` to the log line and the trace. `complete`: it finished normally.
  void AddWork(int64_t index, const core::GenerationSummary& summary, bool complete);
  // Adds an image.
  void AddWork(const core::ClassificationTimings& timings) { AddItem(0, timings, std::nullopt); }
  // Adds a document. `arrival`: of a document of a stream.
  void AddWork(const ScoredText& text, const std::optional<DocumentArrival>& arrival = std::nullopt);
  // What the call's loading did; nullopt if it loaded nothing.
  void SetLoadOutcome(core::LoadOutcome outcome) { load_outcome_ = outcome; }
  std::optional<core::LoadOutcome> load_outcome() const { return load_outcome_; }

  // The client's address.
  const std::string& peer() const { return peer_; }
  // The call's trace.
  TracedCall& trace() { return trace_; }
  const TracedCall& trace() const { return trace_; }

  // Counts and logs the call. Returns the status for the client, with the Refusal (core/schedule/refusal.h) of
  // `work_status`. Call it once, right before the status is sent.
  absl::Status Finish(const absl::Status& work_status);

 private:
  absl::Status Identify(const Credentials& credentials);
  void NoteWork();
  void AddTokens(int64_t prompt_tokens, int64_t generated_tokens, const core::RequestTimings& timings);
  void AddItem(int64_t tokens, const core::ClassificationTimings& timings,
               const std::optional<DocumentArrival>& arrival);
  // Find among the models that the caller may use. REQUIRES: !caller_.MayUseAllModels().
  absl::StatusOr<std::shared_ptr<core::ServedModel>> FindAmongAllowed(const ModelReference& reference) const;
  void AddToStatistics(absl::StatusCode code, absl::Time now) const;
  LogFields FieldsOf(const absl::Status& status, absl::StatusCode code, absl::Duration duration) const;

  const CallEnvironment& environment_;
  const CallNames& names_;
  const absl::Time arrived_;
  core::RequestContext engine_context_;
  TracedCall trace_;
  const std::string peer_;
  const int64_t max_answer_bytes_;
  UnreadAnswers::Account answers_;
  absl::Status origin_status_;
  Credentials credentials_;  // cleared by Admit: secrets are not kept longer than needed
  Caller caller_;
  std::string named_client_;        // the name that the caller gives itself
  const bool within_call_ = false;  // the caller was identified by the enclosing call
  bool inside_ = false;
  bool unavailable_ = false;  // the call ended with UNAVAILABLE
  bool slow_reader_ = false;
  std::optional<core::LoadOutcome> load_outcome_;
  std::string model_;
  int64_t version_ = 0;
  std::shared_ptr<core::ServingStatistics> statistics_;  // null if the call is no inference
  int64_t works_ = 0;                                    // completions, documents, items
  absl::Time worked_ = absl::InfinitePast();             // when the last of them ended
  int64_t prompt_tokens_ = 0;
  int64_t generated_tokens_ = 0;
  int64_t items_ = 0;  // for classifiers
  // Maxima over the call's completions, documents or items.
  core::RequestTimings timings_;
  core::ClassificationTimings item_timings_;
};

}  // namespace longshort::server
