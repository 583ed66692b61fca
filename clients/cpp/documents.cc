#include "clients/cpp/documents.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace longshort {
namespace {

// Errors: NOT_FOUND naming the reason; INVALID_ARGUMENT if there is more than any server takes, as of /dev/zero.
absl::StatusOr<std::string> ReadAll(const std::string& name, std::istream& stream) {
  std::string bytes;
  std::string block(size_t{1} << 16, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    bytes.append(block, 0, static_cast<size_t>(stream.gcount()));
    if (bytes.size() > kMostDocumentBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": more than ", kMostDocumentBytes, " bytes; no server takes as much in one message"));
    }
  }
  if (stream.bad()) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  return bytes;
}

// How many tokens a model with this tokenizer (as Model.tokenizer names it) makes of the input. Exact for ids and for
// byte vocabularies; for characters, how many UTF-8 characters there are. REQUIRES: none of words ("listops_...").
int64_t CountTokens(const v1::Input& input, const std::string& tokenizer) {
  if (input.has_ids()) return input.ids().ids_size();
  if (tokenizer != "fairseq_characters") return static_cast<int64_t>(input.raw().size());
  // Every byte of a UTF-8 character but its first is of the form 10xxxxxx.
  return std::count_if(input.raw().begin(), input.raw().end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; });
}

absl::Status FitLanguageModel(const v1::Model& model, const v1::Input& input) {
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.limits().prompt_tokens();
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", tokens, " tokens; the server takes at most ", limit,
                   " in one document. Start the server with --max-prompt-tokens=", tokens,
                   " to score it with the memory carried on, or cut it: \"split --line-bytes=", limit,
                   " FILE\" makes parts that are each scored from an empty memory."));
}

absl::Status FitClassifier(const v1::Model& model, bool truncate, v1::Input& input) {
  const bool a_byte_a_token = model.tokenizer() == "bytes_plus_one";
  if (!input.has_ids() && !a_byte_a_token) return absl::OkStatus();
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.classifier().max_document_tokens();
  if (tokens <= limit) return absl::OkStatus();
  if (!truncate) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", tokens, " tokens; the model takes at most ", limit,
                                                   ". --truncate reads only the first ", limit, "."));
  }
  const int64_t kept = limit + 1;
  if (input.has_ids()) {
    input.mutable_ids()->mutable_ids()->Truncate(static_cast<int>(kept));
  } else {
    input.mutable_raw()->resize(static_cast<size_t>(kept));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> DocumentNames(std::vector<std::string> arguments) {
  if (arguments.empty()) arguments.emplace_back("-");
  return arguments;
}

absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal) {
  if (name == "-") {
    if (terminal.input_is_terminal) terminal.error << "Reading standard input; Ctrl-D ends it.\n" << std::flush;
    return ReadAll("standard input", terminal.input);
  }
  // Opening a folder succeeds; only reading it fails.
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return absl::NotFoundError(absl::StrCat(name, ": is a folder"));
  std::ifstream file(name, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  return ReadAll(name, file);
}

absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids) {
  v1::Input input;
  if (!as_ids) {
    input.set_raw(std::move(bytes));
    return input;
  }
  v1::TokenIds* ids = input.mutable_ids();
  for (const absl::string_view word : absl::StrSplit(bytes, absl::ByAnyChar(" \t\r\n,"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id)) {
      return absl::InvalidArgumentError(absl::StrCat("--ids: \"", word, "\" is not a token id"));
    }
    ids->add_ids(id);
  }
  return input;
}

absl::StatusOr<DocumentInputs> MakeInputs(std::string first, std::optional<std::string> second, bool as_ids) {
  absl::StatusOr<v1::Input> first_input = MakeInput(std::move(first), as_ids);
  if (!first_input.ok()) return first_input.status();
  if (!second.has_value()) return DocumentInputs{*std::move(first_input), std::nullopt};
  absl::StatusOr<v1::Input> second_input = MakeInput(*std::move(second), as_ids);
  if (!second_input.ok()) return second_input.status();
  return DocumentInputs{*std::move(first_input), *std::move(second_input)};
}

absl::Status FitDocument(const v1::Model& model, bool truncate, DocumentInputs& inputs) {
  if (!model.has_classifier()) return FitLanguageModel(model, inputs.first);
  absl::Status first = FitClassifier(model, truncate, inputs.first);
  if (!first.ok() || !inputs.second.has_value()) return first;
  return FitClassifier(model, truncate, *inputs.second);
}

}  // namespace longshort
