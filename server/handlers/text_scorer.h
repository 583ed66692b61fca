// Scores single documents with any kind of model, for unary calls and for streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/request_context.h"
#include "server/call/call_record.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/request_limits.h"
#include "server/calls/score_call.h"

namespace longshort::server {

// The input of one score: a document, or the two documents of a classifier of pairs. The ids are checked. The vectors
// have no spare capacity, so tokens() measures the memory.
struct TextToScore {
  std::vector<std::vector<int32_t>> documents = {};
  // One for each document, for classifiers.
  std::vector<DocumentReading> readings = {};
  // For language models: the session that the document continues.
  std::optional<core::SessionReference> session = std::nullopt;

  int64_t tokens() const;
};

// Immutable, so any thread may use it.
class TextScorer {
 public:
  // Called once for one text, on the engine's thread; must not block. Errors of the text: INVALID_ARGUMENT and
  // INTERNAL; errors of the call: CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
  using Done = std::function<void(absl::StatusOr<ScoredText>)>;

  // Holds the model, whose labels a ScoredText views. Errors: FAILED_PRECONDITION if the model takes no texts;
  // INVALID_ARGUMENT for an option that is out of range or not for this kind of model.
  static absl::StatusOr<std::unique_ptr<TextScorer>> Make(std::shared_ptr<const core::ServedModel> model,
                                                          const ScoreOptions& options, const RequestLimits& limits,
                                                          const CallNames& names);
  virtual ~TextScorer() = default;

  // Reads text `index` of a call with several (nullopt: the only one), with its second document if it has one.
  // Errors: INVALID_ARGUMENT with the document, its fault and the limit.
  virtual absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                           std::optional<int64_t> index) const = 0;

  // Upper bound of the answer's bytes for `texts` texts with `tokens` tokens in total.
  virtual int64_t AnswerBytes(int64_t texts, int64_t tokens) const = 0;
  // Errors: INVALID_ARGUMENT if such an answer does not fit into one of `max_bytes`.
  virtual absl::Status CheckAnswerFits(int64_t texts, int64_t tokens, int64_t max_bytes) const = 0;

  // On OK `done` is called later, before which this must not be destroyed; on an error, never. Errors:
  // RESOURCE_EXHAUSTED if the engine is full, UNAVAILABLE.
  virtual absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const = 0;
};

// The fields of a text and of its second document. The text is one of several, or the only one of the call.
FieldPath FirstOf(std::optional<int64_t> index);
FieldPath SecondOf(std::optional<int64_t> index);

// The name of the operation in traces for texts of this model.
const char* OperationOfTexts(const core::ServedModel& model, const ScoreOptions& options);

// Make a scorer of texts from a classifier. REQUIRES: the model takes texts.
//
// Scores by the model's classes. Errors: INVALID_ARGUMENT for an option that is out of range, FAILED_PRECONDITION if
// the model has no head.
absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassScorer(const std::shared_ptr<const core::ServedClassifier>& model,
                                                            const ScoreOptions& options, const CallNames& names);
// Scores by the model's embeddings. Errors: those of OutputOf (item_answer.h).
absl::StatusOr<std::unique_ptr<TextScorer>> MakeEmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                                const EmbedOptions& options, const CallNames& names);

// Scores the texts of a unary call, in their session if there is one: each is an engine request. The engine has some of
// them at a time, at most `max_in_queue` of one client in the queue. So a call may have more texts than the queue has
// places, and takes only its share of them.
//
// `result` has its `served` model. `done` holds `record`. After OK it is called once, at once or later, on any thread;
// after an error, never.
// Errors: those of TextScorer; INVALID_ARGUMENT if the number of texts is out of range.
absl::Status RunTexts(CallRecord& record, const ScoreCall& call, const std::shared_ptr<const TextScorer>& scorer,
                      int64_t max_in_queue, ScoreResult result, std::function<void(absl::StatusOr<ScoreResult>)> done);

}  // namespace longshort::server
