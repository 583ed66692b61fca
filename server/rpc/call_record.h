// One call, from arrival to its end: its id, its place in the gate, its metrics and its line in the log.
//
// Thread: one thread at a time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "longshort/v1/types.pb.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/pause_watch.h"
#include "server/scoring/text_scorer.h"

namespace longshort {

class CallRecord {
 public:
  // Returns the request's id in the initial metadata. `rpc` must be a literal. `context` must outlive the record's
  // Finish.
  CallRecord(const CallEnvironment& environment, const char* rpc, grpc::CallbackServerContext& context);
  // Leaves the gate: the call is over for gRPC too.
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // Errors: UNAVAILABLE if the server is stopping; INVALID_ARGUMENT for metadata that is wrong (ReadCallMetadata).
  absl::Status Admit();
  // The model that the call names; from now on it is the call's in metrics and log. Errors: as ModelRegistry::Find.
  absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const v1::ModelSelector& selector);
  // The same for calls that need a kind of model. They keep the whole served model. Errors: also FAILED_PRECONDITION if
  // the model is of the other kind.
  absl::StatusOr<std::shared_ptr<const ServedLanguageModel>> FindLanguageModel(const v1::ModelSelector& selector);
  absl::StatusOr<std::shared_ptr<const ServedClassifier>> FindClassifier(const v1::ModelSelector& selector);
  // Name and version of the model that was found.
  v1::ModelSelector answering_model() const;

  // For the engine: id, client, priority, deadline, and the flags that Cancel() and Pause() set.
  const RequestContext& engine_context() const { return engine_context_; }
  // Thread-safe, from any thread.
  void Cancel() { engine_context_.cancelled->store(true); }
  // Whether the client's reading holds up the work. Thread-safe, from any thread.
  void Pause(bool paused) { engine_context_.paused->store(paused); }
  // Cancels work and call, because the client took nothing for --slow-reader-timeout: a status would wait behind what
  // nobody reads. Finish, which must come later, tells that, whatever its status.
  void CancelSlowReader();
  // The same of an answer that gRPC keeps, when the call is finished, until the client has room for it: cancels the
  // call when that takes as long, unless the watch or `owner`, which has the record, is gone before. To be called
  // before Finish, whose status nobody can change any more.
  std::shared_ptr<PauseWatch> WatchAnswer(std::weak_ptr<const void> owner);

  // Adds to what the log line tells of one completion or document.
  void AddWork(int64_t prompt_tokens, int64_t generated_tokens, const RequestTimings& timings);
  // The same of one item of a classifier; `tokens` is 0 for an image.
  void AddWork(int64_t tokens, const ClassificationTimings& timings);
  void AddWork(const ScoredText& text);

  // Counts and logs the call, and tells the client when to come back if it was refused for want of room. To be called
  // once, right before gRPC is told the status that this returns.
  grpc::Status Finish(const absl::Status& work_status);

 private:
  const CallEnvironment& environment_;
  const char* const rpc_;
  const absl::Time arrived_;
  grpc::CallbackServerContext& context_;
  RequestContext engine_context_;
  absl::Status metadata_status_;
  bool inside_ = false;
  bool unavailable_ = false;  // is what the client is told
  bool slow_reader_ = false;
  std::string model_;
  int64_t version_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t generated_tokens_ = 0;
  int64_t items_ = 0;  // of classifiers
  // The longest of the call's completions, documents or items.
  RequestTimings timings_;
  ClassificationTimings item_timings_;
};

}  // namespace longshort
