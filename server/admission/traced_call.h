// What a call's trace has of it: whose trace it belongs to, and, if it is recorded, its span and those of its stages.
//
// The stages, each below the call's span:
//   preparation  from its arrival until the engine has it: read, checked, tokenised. Of each image: decoded, resized
//   queue        of each completion, document or image: until its first step or batch
//   prefill      of each completion or document of a language model: a step of the model that reads a piece of its
//                prompt, beside others' work; or several steps in a row, if there are very many
//   decode       of each completion: from its first token to its last
//   batch        of each document or image of a classifier: the batch that it was in
//   delivery     of a stream from its first message, otherwise from the work's end, until the call's end
//
// Thread: one at a time, but for BeginMessage, which may come beside the others (one at a time, too, and before End).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/classification_request.h"
#include "core/requests/generation_request.h"
#include "core/requests/request_timings.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/monitoring/call_trace.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/tracer.h"

namespace longshort::server {

// What a front has read of a call's trace.
struct TraceOrigin {
  std::optional<TraceContext> parent = std::nullopt;
  // By which name the client knows the server: host, or host:port.
  std::string authority = {};
};

// When a document of a stream had been read, and when it was ready for the engine.
struct DocumentArrival {
  absl::Time read;
  absl::Time ready;
};

class TracedCall final {
 public:
  // Of a call that arrived just now. Without a tracer nothing is recorded.
  TracedCall(Tracer* tracer, const CallNames& names, TraceOrigin origin, absl::Time arrived);
  // Of one within `call`.
  TracedCall(const TracedCall& call, const CallNames& names, absl::Time arrived);

  // The trace and the span, if the call belongs to a trace: its own span, or without a tracer its client's.
  void AppendTo(LogFields& fields) const;

  bool recorded() const { return trace_ != nullptr; }
  // `key` is a literal. Does nothing if the call is not recorded.
  void Set(const char* key, AttributeValue value);

  // The stages of completion `index`. `complete`: it has ended as it should.
  void AddGeneration(int64_t index, const core::GenerationSummary& summary, bool complete);
  // Those of a document that a language model has scored, and of an item of a classifier. `arrival`: if not the call
  // brought it, but one of its messages.
  void AddScore(int64_t index, int64_t cached_tokens, const core::RequestTimings& timings,
                const std::optional<DocumentArrival>& arrival);
  void AddItem(int64_t index, int64_t tokens, const core::ClassificationTimings& timings,
               const std::optional<DocumentArrival>& arrival);
  // A message of the answer is about to be written.
  void BeginMessage();

  // What the call was in the end. Once; nothing is recorded from then on.
  struct Ending {
    absl::Status status;  // with the code that the client is told
    absl::Time time;
    const std::string& id;
    const ModelReference& model;
    int64_t prompt_tokens = 0;
    int64_t generated_tokens = 0;
    int64_t parts = 0;
  };
  void End(const Ending& ending);

 private:
  void Start(const CallNames& names, absl::Time arrived);
  void AddStage(const StageSpan& stage);
  // Those that every part of the call has; returns where the queue's stage ends.
  absl::Time AddQueue(int64_t index, absl::Time submitted, absl::Duration preparation, absl::Duration queue,
                      const std::optional<DocumentArrival>& arrival);
  void AddPrefill(int64_t index, const core::RequestTimings& timings);
  void AddPreparationAndDelivery(absl::Time end);

  Tracer* const tracer_;
  std::optional<TraceContext> context_;
  std::unique_ptr<CallTrace> trace_;               // null if the call is not recorded
  absl::Time submitted_ = absl::InfiniteFuture();  // the first of what the call brought
  absl::Time worked_ = absl::InfinitePast();       // the end of what was done last
  int64_t cached_tokens_ = 0;
  std::vector<std::pair<int64_t, const char*>> finish_reasons_;  // by completion
  // Of BeginMessage.
  absl::Time first_message_ = absl::InfiniteFuture();
  int64_t messages_ = 0;
};

}  // namespace longshort::server
