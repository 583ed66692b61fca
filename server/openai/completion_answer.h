// Makes OpenAI's answers of a completions request from the results of its work: whole ones, and the parts of a stream.
//
// Thread: one at a time. The stream's mutex guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/registry/served_model.h"
#include "core/sampling/log_probabilities.h"
#include "core/sampling/utf8_stream.h"
#include "models/tokenizer/tokenizer.h"
#include "server/admission/call_record.h"
#include "server/calls/call_parts.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/openai/messages.pb.h"

namespace longshort::server {

class CompletionAnswer final {
 public:
  // The answer to `request` to `model`. Keeps neither.
  CompletionAnswer(const openai::CompletionsRequest& request, const CallRecord& record,
                   const core::ServedLanguageModel& model);

  openai::Completions OfResult(GenerateResult result);
  // The prompts' own tokens, for a request that generates none.
  openai::Completions OfScores(const ScoreResult& result);
  // The stream's part for an event; nullopt if there is none.
  std::optional<openai::Completions> OfEvent(StreamEvent event);
  // The part of a stream that has only the usage of `answer`; nullopt if the client did not ask for it.
  std::optional<openai::Completions> UsagePart(const openai::Completions& answer) const;

 private:
  struct Prompt {
    std::optional<int32_t> first_token;
    std::string text;  // if the answer is of the prompts only
  };
  struct Position {
    core::Utf8Stream text;
    int64_t characters = 0;
    bool begun = false;
  };

  openai::Completions Begin() const;
  openai::Choice& AddChoice(int64_t index, openai::Completions& answer) const;
  // Adds the next tokens of the choice's text, after the prompt's first one. `at_end`: no further ones follow.
  void AddTokens(const std::vector<core::GeneratedToken>& tokens, bool at_end, openai::Choice& choice);
  Position& PositionOf(const openai::Choice& choice);
  openai::Token& AddToken(int32_t id, openai::Choice& choice);
  std::string TextOf(int32_t id) const;
  void Set(const Usage& usage, openai::Usage& message) const;

  const std::string id_;
  const int64_t created_;
  const std::string model_;
  const std::shared_ptr<const models::Tokenizer> tokenizer_;  // null if the model has no vocabulary
  const int64_t completions_;                                 // of each prompt
  const bool describes_tokens_;
  const bool echo_;
  const bool include_usage_;
  std::vector<Prompt> prompts_;
  std::vector<Position> positions_;  // by choice, up to the last one that has tokens
};

}  // namespace longshort::server
