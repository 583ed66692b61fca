// The calls of the determinism test's clients to a language model: calls of every kind, alone or in sessions.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/requests/language_model_requests.h"
#include "models/model.h"

namespace longshort {

// Without context and session, which the caller adds.
using Call = std::variant<core::GenerationRequest, core::ScoringRequest>;

// One call, or several that go on with a session.
struct Conversation {
  std::string model;
  bool in_session = false;
  std::vector<Call> calls;
};

// Many of them begin with the same texts, some end inside them.
std::vector<Conversation> RandomConversations(const std::string& model, const models::LanguageModelInfo& info,
                                              int64_t count, uint64_t seed);

// The tokens that a call gives the model to read.
const std::vector<int32_t>& GivenTokens(const Call& call);
// For reports: "generate greedy", "generate seeded" or "score".
std::string KindOf(const Call& call);

}  // namespace longshort
