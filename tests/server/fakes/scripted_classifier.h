// Classifiers that do what a test says: their engine, their tokenizer and their preprocessing.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/registry/served_model.h"
#include "core/requests/classifier_engine.h"

namespace longshort::server {

// Keeps what is submitted until the test asks for it. Thread-safe.
class ScriptedClassifierEngine final : public core::ClassifierEngine {
 public:
  struct Item {
    core::ClassificationRequest request;
    std::shared_ptr<core::ClassificationListener> listener;
  };

  // Submission number n (from 0) is answered with what this returns.
  std::function<absl::Status(int)> on_submit = [](int) { return absl::OkStatus(); };

  absl::Status Classify(core::ClassificationRequest request,
                        std::shared_ptr<core::ClassificationListener> listener) override;
  core::ClassifierEngineState state() const override { return {}; }
  void Drain(absl::Time) override {}

  // Waits until `count` are there, and hands over all that are.
  std::vector<Item> TakeItems(size_t count);
  // How many are there.
  size_t size();

 private:
  std::mutex mutex_;
  std::condition_variable submitted_;
  int submissions_ = 0;
  std::vector<Item> items_;
};

// Classes "cat", "dog" and "owl"; documents of up to 8 tokens, a token being a byte + 1.
core::ServedClassifier TextClassifier(std::unique_ptr<core::ClassifierEngine> engine, int64_t documents = 1);
// The same classes. A byte of an image is a million pixels. Decode makes an image whose only value is the number of
// bytes; INVALID_ARGUMENT for "broken".
core::ServedClassifier ImageClassifier(std::unique_ptr<core::ClassifierEngine> engine);

// Scores whose likeliest class is `likeliest`, by far.
core::ItemResult ScoresFor(int likeliest);

}  // namespace longshort::server
