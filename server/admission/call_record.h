// One call, from arrival to its end: its place in the gate, its model, its metrics and its line in the log. It knows no
// protocol: a front reads who asks, and tells its client the status that Finish returns.
//
// Thread: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/requests/classification_request.h"
#include "core/requests/generation_request.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "core/requests/serving_statistics.h"
#include "server/access/access_table.h"
#include "server/admission/call_environment.h"
#include "server/admission/traced_call.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/calls/score_call.h"
#include "server/calls/session_owner.h"

namespace longshort::server {

// Who asks, and for how long, as a front reads it from what came with the call.
struct CallOrigin {
  // Usable whatever `status` says. The client is who he says he is.
  core::RequestContext context;
  // What proves it, or what else proves who asks.
  Credentials credentials;
  TraceOrigin trace;
  // INVALID_ARGUMENT naming what is wrong with it, its value and what it may be.
  absl::Status status;
};

// Errors: INVALID_ARGUMENT for what can name no model. Messages and logs repeat the name, so it has a limit.
absl::Status CheckModelReference(const ModelReference& reference, const CallNames& names);

class CallRecord {
 public:
  CallRecord(const CallEnvironment& environment, const CallNames& names, CallOrigin origin);
  // A request within `call`, which was admitted: a call of its own, of the same caller and with the same priority and
  // deadline. `names` are its own, and so is `id`.
  CallRecord(const CallRecord& call, const CallNames& names, std::string id);
  // Leaves the gate: the call is over for its front too.
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // From now on the caller is known: with authentication, the engines' client is his identity, and what he calls
  // himself only tells his own sessions apart. Errors: UNAVAILABLE if the server is stopping; those of
  // AccessControl::Identify and Admit; the origin's status.
  absl::Status Admit();
  const Caller& caller() const { return caller_; }
  // The model that the call names; from now on it is the call's in metrics and log. Errors: as CheckModelReference,
  // CheckMayUse and ModelRegistry::Find, of which those who may not use all models are told what they may use only.
  absl::StatusOr<std::shared_ptr<const core::ServedModel>> FindModel(const ModelReference& reference);
  // The same for calls that need a kind of model. They keep the whole served model. Errors: also FAILED_PRECONDITION if
  // the model is of the other kind.
  absl::StatusOr<std::shared_ptr<const core::ServedLanguageModel>> FindLanguageModel(const ModelReference& reference);
  absl::StatusOr<std::shared_ptr<const core::ServedClassifier>> FindClassifier(const ModelReference& reference);
  // Errors: PERMISSION_DENIED if the caller may not use a model of this name, whether there is one or not.
  absl::Status CheckMayUse(const std::string& model) const;

  // Whose sessions the caller has, and so how the engines know them: nobody reaches another's by naming it.
  SessionOwner session_owner() const;

  // The call is an inference: its end counts in the model's statistics. `operation`, a literal, is what its trace calls
  // it.
  void CountIn(std::shared_ptr<core::ServingStatistics> statistics, const char* operation);

  // Name and version of the model that was found.
  ModelReference answering_model() const { return {.name = model_, .version = version_}; }

  const CallEnvironment& environment() const { return environment_; }
  const CallNames& names() const { return names_; }
  // For the engine: id, client, priority, deadline, and the flags that Cancel() and Pause() set.
  const core::RequestContext& engine_context() const { return engine_context_; }
  // What the call's message says of itself, before its work begins: how urgent it is, and that nobody waits for it
  // longer than this after its arrival, whatever else its deadline is.
  void SetPriority(core::Priority priority) { engine_context_.priority = priority; }
  void EndWithin(absl::Duration longest) {
    engine_context_.deadline = std::min(engine_context_.deadline, arrived_ + longest);
  }
  // Thread-safe, from any thread.
  void Cancel() { engine_context_.cancelled->store(true); }
  // Whether the client's reading holds up the work. Thread-safe, from any thread.
  void Pause(bool paused) { engine_context_.paused->store(paused); }
  // Cancels the work, because the client took nothing for --slow-reader-timeout. Finish, which must come later, tells
  // that, whatever its status.
  void CancelSlowReader();

  // Whether the caller's identity may begin more work within this call. Errors: RESOURCE_EXHAUSTED with a Refusal.
  // Thread-safe.
  absl::Status CheckTokenLimit() const;
  // Counts tokens that an engine has taken or generated for the call against its identity's limit. Thread-safe.
  void ChargeTokens(int64_t tokens) const;

  // Adds to what log line and trace tell of completion `index`; `complete`: it has ended as it should.
  void AddWork(int64_t index, const core::GenerationSummary& summary, bool complete);
  // The same of one image.
  void AddWork(const core::ClassificationTimings& timings) { AddItem(0, timings, std::nullopt); }
  // The same of one document; `arrival` of a stream's.
  void AddWork(const ScoredText& text, const std::optional<DocumentArrival>& arrival = std::nullopt);
  // What the call's trace tells of it.
  TracedCall& trace() { return trace_; }
  const TracedCall& trace() const { return trace_; }

  // Counts and logs the call. Returns what to tell the client, with the Refusal (core/schedule/refusal.h) that
  // `work_status` carries. To be called once, right before the client is told.
  absl::Status Finish(const absl::Status& work_status);

 private:
  absl::Status Identify();
  void NoteWork();
  void AddTokens(int64_t prompt_tokens, int64_t generated_tokens, const core::RequestTimings& timings);
  void AddItem(int64_t tokens, const core::ClassificationTimings& timings,
               const std::optional<DocumentArrival>& arrival);
  // Find, of what the caller may use. REQUIRES: he may not use all models.
  absl::StatusOr<std::shared_ptr<core::ServedModel>> FindAmongAllowed(const ModelReference& reference) const;
  void AddToStatistics(absl::StatusCode code, absl::Time now) const;
  LogFields FieldsOf(const absl::Status& status, absl::StatusCode code, absl::Duration duration) const;

  const CallEnvironment& environment_;
  const CallNames& names_;
  const absl::Time arrived_;
  core::RequestContext engine_context_;
  TracedCall trace_;
  absl::Status origin_status_;
  Credentials credentials_;  // until Admit: a secret is kept no longer than it is needed
  Caller caller_;
  std::string named_client_;        // what the caller calls himself
  const bool within_call_ = false;  // its caller was known from the beginning
  bool inside_ = false;
  bool unavailable_ = false;  // is what the client is told
  bool slow_reader_ = false;
  std::string model_;
  int64_t version_ = 0;
  std::shared_ptr<core::ServingStatistics> statistics_;  // null if it counts in none
  int64_t works_ = 0;                                    // completions, documents, items
  absl::Time worked_ = absl::InfinitePast();             // when the last of them was done
  int64_t prompt_tokens_ = 0;
  int64_t generated_tokens_ = 0;
  int64_t items_ = 0;  // of classifiers
  // The longest of the call's completions, documents or items.
  core::RequestTimings timings_;
  core::ClassificationTimings item_timings_;
};

}  // namespace longshort::server
