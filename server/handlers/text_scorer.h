// Scores documents one by one, whatever the model: what a call does for a few of them and a stream for many.
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
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"
#include "server/calls/request_limits.h"
#include "server/calls/score_call.h"

namespace longshort::server {

// What is scored together: a document, or the two documents of a classifier of pairs. Token ids, checked, without spare
// capacity: what is held is what tokens() counts.
struct TextToScore {
  std::vector<std::vector<int32_t>> documents = {};
  // Of each document of a classifier.
  std::vector<DocumentReading> readings = {};
  // Language models: the conversation that the document goes on with.
  std::optional<core::SessionReference> session = std::nullopt;

  int64_t tokens() const;
};

// Immutable: any thread may use it.
class TextScorer {
 public:
  // Hears of one text, once, from the engine's thread; must not block. Errors: of the text INVALID_ARGUMENT and
  // INTERNAL; of the call CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
  using Done = std::function<void(absl::StatusOr<ScoredText>)>;

  // Keeps the model, whose labels a ScoredText shows. Errors: FAILED_PRECONDITION for a model that takes no texts;
  // INVALID_ARGUMENT naming an option that is out of range, or not for this kind of model.
  static absl::StatusOr<std::unique_ptr<TextScorer>> Make(std::shared_ptr<const core::ServedModel> model,
                                                          const ScoreOptions& options, const RequestLimits& limits,
                                                          const CallNames& names);
  virtual ~TextScorer() = default;

  // Text `index` of a call of several; its second document, if it has one, with it.
  // Errors: INVALID_ARGUMENT naming the document, what is wrong with it and the limit.
  virtual absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                           std::optional<int64_t> index) const = 0;

  // Bytes of the answer about `texts` texts of `tokens` tokens together, at the most.
  virtual int64_t AnswerBytes(int64_t texts, int64_t tokens) const = 0;
  // Errors: INVALID_ARGUMENT if that is too much for one message.
  virtual absl::Status CheckAnswerFits(int64_t texts, int64_t tokens) const = 0;

  // On OK `done` will hear; on an error it never does. Errors: RESOURCE_EXHAUSTED if the engine is full, UNAVAILABLE.
  virtual absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const = 0;
};

// What its trace calls the work on texts of this model.
const char* OperationOfTexts(const core::ServedModel& model);

}  // namespace longshort::server
