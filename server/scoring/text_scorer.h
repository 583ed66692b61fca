// Scores documents one by one, whatever the model: what ScoreText does for a few of them and ScoreTexts for many.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/classification_request.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "core/session/session_reference.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/request_limits.h"

namespace longshort {

// What is scored together: a document, or the two documents of a classifier of pairs. Token ids, checked, without spare
// capacity: what is held is what tokens() counts.
struct TextToScore {
  std::vector<std::vector<int32_t>> documents;
  // Of each document, whether it was cut.
  std::vector<bool> truncated;
  // Language models: the conversation that the document goes on with.
  std::optional<SessionReference> session = std::nullopt;

  int64_t tokens() const;
};

struct ScoredText {
  std::variant<v1::TextScore, v1::TextClassification> result;
  // For the log.
  int64_t tokens = 0;
  int64_t cached_tokens = 0;
  std::variant<RequestTimings, ClassificationTimings> timings;
};

// Immutable: any thread may use it.
class TextScorer {
 public:
  // Hears of one text, once, from the engine's thread; must not block. Errors: of the text INVALID_ARGUMENT and
  // INTERNAL; of the call CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
  using Done = std::function<void(absl::StatusOr<ScoredText>)>;

  // Keeps the model. Errors: FAILED_PRECONDITION for a model that takes no texts; INVALID_ARGUMENT naming an option
  // that is out of range, or not for this kind of model.
  static absl::StatusOr<std::unique_ptr<TextScorer>> Make(std::shared_ptr<const ServedModel> model,
                                                          const v1::ScoreTextsOptions& options,
                                                          const RequestLimits& limits);
  virtual ~TextScorer() = default;

  // `second` is null where the request has no second document. The names stand for them in messages.
  // Errors: INVALID_ARGUMENT naming the document, what is wrong with it and the limit.
  virtual absl::StatusOr<TextToScore> Read(const v1::Input& first, const std::string& first_name,
                                           const v1::Input* second, const std::string& second_name) const = 0;

  // Bytes of the answer about `texts` texts of `tokens` tokens together, at the most.
  virtual int64_t AnswerBytes(int64_t texts, int64_t tokens) const = 0;
  // Errors: INVALID_ARGUMENT if that is too much for one message.
  virtual absl::Status CheckAnswerFits(int64_t texts, int64_t tokens) const = 0;

  // On OK `done` will hear; on an error it never does. Errors: RESOURCE_EXHAUSTED if the engine is full, UNAVAILABLE.
  virtual absl::Status Submit(TextToScore text, const RequestContext& context, Done done) const = 0;
};

}  // namespace longshort
