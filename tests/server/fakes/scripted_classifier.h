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

namespace longshort {

// Keeps what is submitted until the test asks for it. Thread-safe.
class ScriptedClassifierEngine final : public ClassifierEngine {
 public:
  struct Item {
    ClassificationRequest request;
    std::shared_ptr<ClassificationListener> listener;
  };

  // Submission number n (from 0) is answered with what this returns.
  std::function<absl::Status(int)> on_submit = [](int) { return absl::OkStatus(); };

  absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) override;
  ClassifierEngineState state() const override { return {}; }
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
ServedClassifier TextClassifier(std::unique_ptr<ClassifierEngine> engine, int64_t documents = 1);
// The same classes. A byte of an image is a million pixels. Decode makes an image whose only value is the number of
// bytes; INVALID_ARGUMENT for "broken".
ServedClassifier ImageClassifier(std::unique_ptr<ClassifierEngine> engine);

// Scores whose likeliest class is `likeliest`, by far.
ItemScores ScoresFor(int likeliest);

}  // namespace longshort
