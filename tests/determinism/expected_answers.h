// The requests of a mix, with the answer that each gets when it runs alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "tests/determinism/answer.h"
#include "tests/determinism/conversation.h"
#include "tests/determinism/tested_models.h"

namespace longshort {

struct ExpectedConversation {
  const models::LanguageModelWeights* model = nullptr;
  Conversation conversation;
  std::vector<std::vector<int32_t>> histories;  // [calls] what the session holds when the call comes
  std::vector<Answer> answers;                  // [calls]
};

// Items that are asked about at once.
struct ExpectedClassification {
  std::string model;
  std::vector<models::ClassifierItem> items;
  std::vector<std::vector<float>> logits;  // [items], each of a batch of its own
};

// Each call in an engine of its own, behind its history.
std::vector<ExpectedConversation> RunAlone(const TestedLanguageModel& model, int64_t conversations, uint64_t seed);
std::vector<ExpectedClassification> RunAlone(const TestedClassifier& model, int64_t classifications, uint64_t seed);

// How close the sampler was to another token at this one of a call's generated tokens.
double MarginAt(const ExpectedConversation& expected, size_t call, size_t token);

}  // namespace longshort
