// A model that is loaded and has its engine: what a request needs to know of it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/serving_statistics.h"
#include "models/classifier.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::core {

struct ServedLanguageModel {
  std::shared_ptr<const void> memory = nullptr;  // what was set aside for it, given back behind all else
  models::LanguageModelInfo info;
  std::shared_ptr<const models::Tokenizer> tokenizer;  // null for a model that takes ids only
  std::unique_ptr<LanguageModelEngine> engine;
  int64_t max_items = std::numeric_limits<int64_t>::max();  // of one call: its queue never has room for more
  // Added to by the engine's observer and by calls.
  std::shared_ptr<ServingStatistics> statistics = std::make_shared<ServingStatistics>();
};

// How an engine forms batches of what waits, as is told of it.
struct BatchForming {
  int64_t max_size = 1;
  absl::Duration max_queue_delay = absl::ZeroDuration();  // that a batch which is not full waits for more
};

struct ServedClassifier {
  std::shared_ptr<const void> memory = nullptr;  // as above
  models::ClassifierInfo info;
  std::shared_ptr<const models::TextEncoder> tokenizer;           // null for one of images, or that takes ids only
  std::shared_ptr<const models::ImagePreprocessor> preprocessor;  // null for one of texts
  std::unique_ptr<ClassifierEngine> engine;
  BatchForming batches = {};
  int64_t max_items = std::numeric_limits<int64_t>::max();  // as above
  std::shared_ptr<ServingStatistics> statistics = std::make_shared<ServingStatistics>();
};

// One version of one model, ready to serve. Shared with the requests in flight.
struct ServedModel {
  using Kind = std::variant<ServedLanguageModel, ServedClassifier>;

  std::string name;
  int64_t version = 0;
  Kind kind;
  absl::Duration load_duration;

  int64_t max_items() const {
    return std::visit([](const auto& served) { return served.max_items; }, kind);
  }
  const std::shared_ptr<ServingStatistics>& statistics() const {
    return std::visit(
        [](const auto& served) -> const auto& { return served.statistics; }, kind);
  }
  // As config.json calls it.
  std::string architecture() const { return classifier() ? classifier()->info.architecture : "language_model"; }
  // Null if it is of the other kind.
  const ServedLanguageModel* language_model() const { return std::get_if<ServedLanguageModel>(&kind); }
  const ServedClassifier* classifier() const { return std::get_if<ServedClassifier>(&kind); }
};

}  // namespace longshort::core
