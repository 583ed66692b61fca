// Writes results: people get tables, tokens, and completions as they are generated; scripts get lines of JSON.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/text.h"
#include "clients/cpp/terminal.h"
#include "google/protobuf/message.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// Writes a heading, one row for each class (most probable first, with a bar at a terminal), then the logits, if any.
// A class without a label is "class 281".
//   photos/chelsea.png
//     tabby cat    93.10 %  ██████████████████▌
//     tiger cat     4.25 %  ▊
//     logits by class: -0.1234 2.5000 ...
void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal);

// Formats a token as a line of log-probability, id and text, followed by its alternatives as indented lines.
//   -0.1053    101  "e"
//       -0.1053    101  "e"
//       -2.3026     97  "a"
std::string TokenLine(const v1::TokenLogProbability& token);

// Quotes the bytes and escapes those that cannot be printed.
std::string QuoteBytes(const std::string& bytes);

// Replaces each byte that is not part of a UTF-8 character by U+FFFD.
std::string ValidUtf8(absl::string_view bytes);

// Writes the message as one line of JSON and flushes. Uses protobuf's JSON mapping (64-bit integers are strings, bytes
// are base64) with the proto's field names, and includes fields with default values.
void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output);

// Writes the message as WriteJsonLine does, after a field "name" of the file or document. Applies ValidUtf8 to the
// name.
void WriteNamedJsonLine(const std::string& name, const google::protobuf::Message& message, std::ostream& output);

// Writes the message as WriteNamedJsonLine does, with the result's origin after the name: `model`, if not null, and the
// fingerprint and precision of `weights` (from GetModel), if set. Omits empty lists.
void WriteAnswerJsonLine(const std::string& name, const v1::Model& weights, const v1::ModelSelector* model,
                         const google::protobuf::Message& message, std::ostream& output);

// Writes {"name": ..., "error": {"code": ..., "message": ...}}.
void WriteErrorJsonLine(const std::string& name, const v1::ItemError& error, std::ostream& output);

// Shows completions as they are generated. A single completion is written as it arrives. Several are written one after
// the other, each under a line "--- INDEX ---"; the later ones are buffered. The summary goes to terminal.error.
class CompletionPrinter final {
 public:
  enum class Form {
    kText,
    // Bytes, which may not be UTF-8.
    kRaw,
    // A TokenLine for each token.
    kTokens,
  };

  CompletionPrinter(Terminal& terminal, Form form, int completions);

  void OnMessage(const v1::GenerateStreamResponse& message);
  // Shows the completions of a unary response.
  void OnResponse(const v1::GenerateResponse& response);

 private:
  struct State {
    std::string waiting;
    std::string finish;
    bool has_ids = false;
    bool ended = false;
  };

  void Add(int index, const std::string& text);
  void End(int index, v1::FinishReason reason, const std::string& stop);
  void WriteHeading();
  // Prints how each completion ended, then the rate and the seed.
  void Summarize(const v1::Usage& usage);
  // Works for CompletionDelta and Completion. The text of a model without vocabulary is its ids, as --ids reads them.
  template <typename Part>
  std::string Render(const Part& part);

  Terminal& terminal_;
  const Form form_;
  std::vector<State> states_;
  // The completion that is being written.
  size_t current_ = 0;
  uint64_t seed_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace longshort::client
