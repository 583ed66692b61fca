// What a command reads: files named on the command line, or standard input; as what a model takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/models.pb.h"
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

// Refuses a document that the server would refuse for its tokens, and with `truncate` cuts one so that the server still
// sees that it goes on: what is too long is mostly too large a message, too.
// Documents whose tokens are words are left as they are: only the server knows how long they are.
// Errors: INVALID_ARGUMENT with the length, the limit and what to do.
absl::Status FitDocument(const v1::Model& model, bool truncate, DocumentInputs& inputs);

}  // namespace longshort
