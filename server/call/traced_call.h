// A call's trace: the trace that it belongs to and, if it is recorded, its span and the spans of its stages.
//
// The stages are children of the call's span:
//   preparation  from the call's arrival until the engine has it: reading, checks, tokenization. For each image:
//                decoding and resizing
//   queue        for each completion, document or image: until its first step or batch
//   prefill      for each completion or document of a language model: a step that reads a piece of its prompt, batched
//                with other work; several successive steps, if there are very many
//   decode       for each completion: from its first token to its last
//   batch        for each document or image of a classifier: its batch
//   delivery     from a stream's first message, or from the end of a unary call's work, to the end of the call
//
// Thread: one at a time. BeginMessage may overlap the other functions, but not itself, and must precede End.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_requests.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/tracer.h"

namespace longshort::server {

// The trace context and authority that came with a call.
struct TraceOrigin {
  std::optional<TraceContext> parent = std::nullopt;
  // The name by which the client addressed the server: host, or host:port.
  std::string authority = {};
};

// When a document of a stream was read, and when it was ready for the engine.
struct DocumentArrival {
  absl::Time read;
  absl::Time ready;
};

class TracedCall final {
 public:
  // A call that arrived just now. Without a tracer nothing is recorded.
  TracedCall(Tracer* tracer, const CallNames& names, TraceOrigin origin, absl::Time arrived);
  // A call within `call`.
  TracedCall(const TracedCall& call, const CallNames& names, absl::Time arrived);

  // Adds the trace id and span id, if the call belongs to a trace: its own span, or without a tracer the client's.
  void AppendTo(LogFields& fields) const;

  bool recorded() const { return trace_ != nullptr; }
  // `key` is a literal. Does nothing if the call is not recorded.
  void Set(const char* key, AttributeValue value);

  // The stages of completion `index`. `complete`: it finished normally.
  void AddGeneration(int64_t index, const core::GenerationSummary& summary, bool complete);
  // The stages of a document that a language model scored, or of a classifier's item. `arrival`: set if it came with a
  // message of a stream.
  void AddScore(int64_t index, int64_t cached_tokens, const core::RequestTimings& timings,
                const std::optional<DocumentArrival>& arrival);
  void AddItem(int64_t index, int64_t tokens, const core::ClassificationTimings& timings,
               const std::optional<DocumentArrival>& arrival);
  // A message of the answer is about to be written.
  void BeginMessage();

  // The final values. Called once; nothing is recorded afterwards.
  struct Ending {
    absl::Status status;  // as the client gets it
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
  // The stages that all parts of a call have. Returns the end of the queue stage.
  absl::Time AddQueue(int64_t index, absl::Time submitted, absl::Duration preparation, absl::Duration queue,
                      const std::optional<DocumentArrival>& arrival);
  void AddPrefill(int64_t index, const core::RequestTimings& timings);
  void AddPreparationAndDelivery(absl::Time end);

  Tracer* const tracer_;
  std::optional<TraceContext> context_;
  std::unique_ptr<CallTrace> trace_;               // null if the call is not recorded
  absl::Time submitted_ = absl::InfiniteFuture();  // first submission to the engine
  absl::Time worked_ = absl::InfinitePast();       // end of the latest stage
  int64_t cached_tokens_ = 0;
  std::vector<std::pair<int64_t, const char*>> finish_reasons_;  // with the completion's index
  // Used by BeginMessage.
  absl::Time first_message_ = absl::InfiniteFuture();
  int64_t messages_ = 0;
};

}  // namespace longshort::server
