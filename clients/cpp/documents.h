// What a command reads: files named on the command line, or standard input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// "-", standard input, if no file is named.
std::vector<std::string> DocumentNames(std::vector<std::string> arguments);

// No server takes a longer message.
inline constexpr size_t kMostDocumentBytes = size_t{1} << 30;

// The whole of a file, or of standard input for "-". Tells a person at a terminal that input is awaited.
// Errors: NOT_FOUND naming the file and the reason; INVALID_ARGUMENT if it has more than 1 GiB.
absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal);

// The bytes as they are; with `as_ids`, the decimal token ids that they list, separated by white space or commas.
// Errors: INVALID_ARGUMENT naming the word that is no id.
absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids);

// What a model reads as one item.
struct DocumentInputs {
  v1::Input first;
  // Of a classifier of two documents.
  std::optional<v1::Input> second;
};

// MakeInput of each.
absl::StatusOr<DocumentInputs> MakeInputs(std::string first, std::optional<std::string> second, bool as_ids);

// How many tokens a model with this tokenizer (as Model.tokenizer names it) makes of the input. Exact for ids and for
// byte vocabularies; for characters, how many UTF-8 characters there are. REQUIRES: none of words ("listops_...").
int64_t CountTokens(const v1::Input& input, const std::string& tokenizer);

}  // namespace longshort
