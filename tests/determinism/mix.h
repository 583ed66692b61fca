// Runs requests concurrently on disturbed models, and compares each answer with that of the request alone.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "tests/determinism/disturber.h"
#include "tests/determinism/expected_answers.h"
#include "tests/determinism/happenings.h"
#include "tests/determinism/ledger.h"
#include "tests/determinism/swapped_models.h"

namespace longshort {

// Log-probabilities and logits may differ by so much, and the sampler's choice if its margin is no larger.
inline constexpr double kTolerance = 1e-5;
inline constexpr double kMargin = 2e-5;

class Mix final {
 public:
  using Work = std::variant<const ExpectedConversation*, const ExpectedClassification*>;

  // The arguments must outlive this.
  Mix(SwappedModels& models, Disturber& disturber, Happenings& happenings, Ledger& ledger)
      : models_(models), disturber_(disturber), happenings_(happenings), ledger_(ledger) {}

  // Has a few clients do all of it, in this order, each with a piece of it at a time.
  void Run(const std::vector<Work>& work, uint64_t seed);

 private:
  void RunConversation(const ExpectedConversation& expected, const std::string& session, Random& random);
  // The session leaves `from` for `to`, which may be the same engine.
  void MoveSession(core::LanguageModelEngine& from, core::LanguageModelEngine& to, const std::string& session);
  // Asks until the answer is whole. Returns whether it has the tokens of the one alone.
  bool RunCall(core::LanguageModelEngine& engine, const ExpectedConversation& expected, size_t call,
               const std::string& session, Random& random);
  // One try. Sets `same_tokens` if it is whole, and returns that.
  bool TryCall(core::LanguageModelEngine& engine, const ExpectedConversation& expected, size_t call,
               const std::string& session, int64_t cancel_after, bool& same_tokens);
  void RunClassification(const ExpectedClassification& expected, Random& random);

  SwappedModels& models_;
  Disturber& disturber_;
  Happenings& happenings_;
  Ledger& ledger_;
};

}  // namespace longshort
