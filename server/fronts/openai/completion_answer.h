// Makes OpenAI's answers of a completions request from the results of its work: whole ones, and the parts of a stream.
//
// Thread: one at a time, the one that writes an answer. Answers are written in the order in which they were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry/served_model.h"
#include "core/sampling/sampler.h"
#include "models/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "server/call/call_record.h"
#include "server/call/rpc.h"
#include "server/calls/call_parts.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/completion_translator.h"

namespace longshort::server {

// It must outlive its answers.
class CompletionAnswer final {
 public:
  // The answer to `request` to `model`. Keeps neither.
  CompletionAnswer(const CompletionsRequest& request, const CallRecord& record, const core::ServedLanguageModel& model);

  CallAnswer OfResult(GenerateResult result);
  // The prompts' own tokens, for a request that generates none. `is_part`: as the part of a stream.
  CallAnswer OfScores(ScoreResult result, bool is_part);
  // The stream's part for an event; nullopt if there is none.
  std::optional<CallAnswer> PartOf(StreamEvent event);
  // The part of a stream that has only the usage; nullopt if the client did not ask for it.
  std::optional<CallAnswer> UsagePart(const Usage& usage);

 private:
  struct EchoedPrompt {
    std::optional<int32_t> first_token;
    std::string text;  // if the answer is of the prompts only
  };
  struct Position {
    Utf8Stream text;
    int64_t characters = 0;
    bool begun = false;
  };

  // The next piece of a choice.
  struct Piece {
    int64_t index = 0;
    std::string_view text = {};
    const std::vector<core::GeneratedToken>& tokens;
    std::optional<core::FinishReason> finish_reason = std::nullopt;  // of the last one
  };

  // The JSON of an answer: its beginning, choices, and its end with the usage, if the answer has such a field.
  std::string Begin() const;
  void Add(const Piece& piece, std::string& json);
  static std::string End(std::string json, const std::optional<nlohmann::ordered_json>& usage);
  // Appends the piece's tokens, behind the first token of an echoed prompt.
  void AddLogprobs(const Piece& piece, std::string& json);
  std::string PromptsOf(const ScoreResult& result, bool is_part);
  std::string PartOfEvent(const StreamEvent& event);
  Position& PositionOf(int64_t index);
  std::string TextOf(int32_t id) const;
  nlohmann::ordered_json ToJson(const Usage& usage) const;
  // The usage of a part that has none.
  std::optional<nlohmann::ordered_json> NoUsage() const;

  const std::string id_;
  const int64_t created_;
  const std::string model_;
  const std::shared_ptr<const models::Tokenizer> tokenizer_;  // null if the model has no vocabulary
  const int64_t completions_;                                 // of each prompt
  const bool describes_tokens_;
  const bool echo_;
  const bool include_usage_;
  std::vector<EchoedPrompt> prompts_;
  std::vector<Position> positions_;  // by choice, up to the last one that has tokens
};

}  // namespace longshort::server
