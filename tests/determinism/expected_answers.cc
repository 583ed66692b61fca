#include "tests/determinism/expected_answers.h"

#include <memory>
#include <utility>

#include "tests/determinism/replayed_logits.h"
#include "tests/determinism/sampling_margin.h"

namespace longshort {
namespace {

constexpr int64_t kMaxItems = 12;

std::vector<float> ClassifyAlone(models::Classifier& classifier, const models::ClassifierItem& item) {
  const models::ClassifierResult result = classifier.Classify({&item}).value();
  return {result.rows.begin(), result.rows.end()};
}

}  // namespace

std::vector<ExpectedConversation> RunAlone(const TestedLanguageModel& model, int64_t conversations, uint64_t seed) {
  std::vector<ExpectedConversation> all;
  for (Conversation& conversation : RandomConversations(model.name, model.weights.info(), conversations, seed)) {
    ExpectedConversation expected{
        .model = &model.weights, .conversation = std::move(conversation), .histories = {}, .answers = {}};
    std::vector<int32_t> history;
    for (const Call& call : expected.conversation.calls) {
      expected.histories.push_back(history);
      expected.answers.push_back(AskAlone(model.weights, call, history));
      const std::vector<int32_t>& given = GivenTokens(call);
      history.insert(history.end(), given.begin(), given.end());
      for (const core::GeneratedToken& token : expected.answers.back().generated) history.push_back(token.token);
    }
    all.push_back(std::move(expected));
  }
  return all;
}

std::vector<ExpectedClassification> RunAlone(const TestedClassifier& model, int64_t classifications, uint64_t seed) {
  Random random(seed);
  const std::unique_ptr<models::Classifier> replica = model.weights.NewReplica({.threads = 1}).value();
  std::vector<ExpectedClassification> all(classifications);
  for (ExpectedClassification& expected : all) {
    expected.model = model.name;
    for (int64_t count = Between(random, 1, kMaxItems); count > 0; --count) {
      expected.items.push_back(model.random_item(random));
      expected.logits.push_back(ClassifyAlone(*replica, expected.items.back()));
    }
  }
  return all;
}

double MarginAt(const ExpectedConversation& expected, size_t call, size_t token) {
  const auto& request = std::get<core::GenerationRequest>(expected.conversation.calls[call]);
  std::vector<int32_t> prompt = expected.histories[call], generated;
  prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
  for (size_t i = 0; i < token; ++i) generated.push_back(expected.answers[call].generated[i].token);
  std::vector<int32_t> text = prompt;
  text.insert(text.end(), generated.begin(), generated.end());
  return SamplingMargin(request.sampling, LogitsBehind(*expected.model, text), prompt, generated);
}

}  // namespace longshort
