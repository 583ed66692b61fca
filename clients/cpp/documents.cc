#include "clients/cpp/documents.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace longshort::client {
namespace {

// Errors: NOT_FOUND with the reason; INVALID_ARGUMENT above kMaxDocumentBytes, so that /dev/zero ends.
absl::StatusOr<std::string> ReadAll(const std::string& name, std::istream& stream) {
  std::string bytes;
  std::string block(size_t{1} << 16, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    bytes.append(block, 0, static_cast<size_t>(stream.gcount()));
    if (bytes.size() > kMaxDocumentBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": more than ", kMaxDocumentBytes, " bytes; no server accepts such a large message"));
    }
  }
  if (stream.bad()) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  return bytes;
}

// Counts the input's tokens for a tokenizer (Model.tokenizer): ids, bytes, or UTF-8 characters.
// REQUIRES: not a word tokenizer ("listops_...").
int64_t CountTokens(const v1::Input& input, const std::string& tokenizer) {
  if (input.has_ids()) return input.ids().ids_size();
  if (tokenizer != "fairseq_characters") return static_cast<int64_t>(input.raw().size());
  // Counts the first byte of each UTF-8 character: all others have the form 10xxxxxx.
  return std::count_if(input.raw().begin(), input.raw().end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; });
}

absl::Status FitLanguageModel(const v1::Model& model, const v1::Input& input) {
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.limits().prompt_tokens();
  if (tokens <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the document has ", tokens, " tokens; the server accepts at most ",
                                                 limit, ". Start the server with --max-prompt-tokens=", tokens,
                                                 " to score it as a whole, or split it: \"split --line-bytes=", limit,
                                                 " FILE\" makes parts that are scored independently."));
}

absl::Status FitClassifier(const v1::Model& model, bool truncate, v1::Input& input) {
  const bool a_byte_a_token = model.tokenizer() == "bytes_plus_one";
  if (!input.has_ids() && !a_byte_a_token) return absl::OkStatus();
  const int64_t tokens = CountTokens(input, model.tokenizer());
  const int64_t limit = model.classifier().max_document_tokens();
  if (tokens <= limit) return absl::OkStatus();
  if (!truncate) {
    return absl::InvalidArgumentError(absl::StrCat("the document has ", tokens, " tokens; the model accepts at most ",
                                                   limit, ". With --truncate it reads the first ", limit, "."));
  }
  const int64_t kept = limit + 1;
  if (input.has_ids()) {
    // The last one stays: an encoder keeps it.
    input.mutable_ids()->set_ids(static_cast<int>(limit), *input.ids().ids().rbegin());
    input.mutable_ids()->mutable_ids()->Truncate(static_cast<int>(kept));
  } else {
    input.mutable_raw()->resize(static_cast<size_t>(kept));
  }
  return absl::OkStatus();
}

// Counts lines as getline does; nullopt if the file cannot be read twice (a pipe).
std::optional<int64_t> CountLines(const std::string& name) {
  std::error_code ignored;
  if (name == "-" || !std::filesystem::is_regular_file(name, ignored)) return std::nullopt;
  std::ifstream file(name, std::ios::binary);
  int64_t lines = 0;
  char last = '\n';
  std::string block(size_t{1} << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const auto end = block.begin() + file.gcount();
    lines += std::count(block.begin(), end, '\n');
    last = *(end - 1);
  }
  return last == '\n' ? lines : lines + 1;
}

// Reads a line without its line end (\n or \r\n); false at the end of the file. Errors: NOT_FOUND if it cannot be read;
// INVALID_ARGUMENT above kMaxDocumentBytes.
absl::StatusOr<bool> ReadLine(std::istream& input, std::string& line) {
  line.clear();
  std::array<char, size_t{1} << 16> block;
  while (line.size() <= kMaxDocumentBytes) {
    input.getline(block.data(), block.size());
    if (input.bad()) return absl::NotFoundError(std::strerror(errno));
    const bool is_whole = !input.fail() && !input.eof();  // gcount() then includes the \n, which is not in the block
    line.append(block.data(), static_cast<size_t>(input.gcount()) - (is_whole ? 1 : 0));
    if (is_whole || input.eof()) {
      const bool is_end = !is_whole && line.empty();
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return !is_end;
    }
    input.clear(input.rdstate() & ~std::ios::failbit);  // the block is full
  }
  return absl::InvalidArgumentError(absl::StrCat("a line of more than ", kMaxDocumentBytes, " bytes"));
}

// The documents of a line.
struct LineTexts {
  std::string first;
  std::optional<std::string> second;
};

// Errors: INVALID_ARGUMENT if there is no tab between two documents.
absl::StatusOr<LineTexts> SplitLine(const std::string& line, const Documents& documents) {
  if (documents.least == 1) return LineTexts{line, std::nullopt};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos)
    return absl::InvalidArgumentError("the line must contain two documents, separated by a tab");
  return LineTexts{line.substr(0, tab), line.substr(tab + 1)};
}

// The field's string, if it has one.
std::optional<std::string> StringField(const google::protobuf::Struct& object, const std::string& field) {
  const auto entry = object.fields().find(field);
  if (entry == object.fields().end() || !entry->second.has_string_value()) return std::nullopt;
  return entry->second.string_value();
}

bool IsAbsentOrNull(const google::protobuf::Struct& object, const std::string& field) {
  const auto entry = object.fields().find(field);
  return entry == object.fields().end() || entry->second.has_null_value();
}

// Sets `name` if the object has one, even if an error follows. Errors: INVALID_ARGUMENT if the line is not as
// Form::kJsonLines requires.
absl::StatusOr<LineTexts> ParseJsonLine(const std::string& line, const Documents& documents, std::string& name) {
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) {
    return absl::InvalidArgumentError("the line is not a JSON object");
  }
  name = StringField(object, "name").value_or(std::move(name));
  std::optional<std::string> first = StringField(object, "text");
  std::optional<std::string> second = documents.most == 2 ? StringField(object, "second_text") : std::nullopt;
  const bool is_pair = documents.least == 2 || (documents.most == 2 && !IsAbsentOrNull(object, "second_text"));
  if (!first.has_value() || (is_pair && !second.has_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON object has no string field \"", first.has_value() ? "second_text" : "text", "\""));
  }
  return LineTexts{*std::move(first), std::move(second)};
}

}  // namespace

std::vector<std::string> DocumentNames(std::vector<std::string> arguments) {
  if (arguments.empty()) arguments.emplace_back("-");
  return arguments;
}

absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal) {
  if (name == "-") {
    if (terminal.input_is_terminal) terminal.error << "Reading standard input; press Ctrl-D to end it.\n" << std::flush;
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

absl::StatusOr<v1::ScoreTextsRequest> MakeItem(std::string first, std::optional<std::string> second, bool as_ids) {
  v1::ScoreTextsRequest item;
  LS_ASSIGN_OR_RETURN(*item.mutable_input(), MakeInput(std::move(first), as_ids));
  if (second.has_value()) {
    LS_ASSIGN_OR_RETURN(*item.mutable_second_input(), MakeInput(*std::move(second), as_ids));
  }
  return item;
}

absl::Status FitDocument(const v1::Model& model, bool truncate, v1::ScoreTextsRequest& item) {
  if (!model.has_classifier()) return FitLanguageModel(model, item.input());
  LS_RETURN_IF_ERROR(FitClassifier(model, truncate, *item.mutable_input()));
  return item.has_second_input() ? FitClassifier(model, truncate, *item.mutable_second_input()) : absl::OkStatus();
}

DocumentSource::DocumentSource(std::vector<std::string> names, std::vector<std::string> second_names,
                               const Options& options, Terminal& terminal)
    : names_(std::move(names)), second_names_(std::move(second_names)), options_(options), terminal_(terminal) {
  if (options.form == Form::kFile) {
    total_ = static_cast<int64_t>(names_.size());
  } else if (options.counts) {
    for (const std::string& name : names_) {
      const std::optional<int64_t> lines = CountLines(name);
      total_ += lines.value_or(0);
      if (lines.has_value()) continue;
      total_ = 0;
      break;
    }
  }
}

std::optional<NamedDocument> DocumentSource::Next() {
  if (file_ == names_.size()) return std::nullopt;
  if (options_.form == Form::kFile) return NextFile();
  return NextLine();
}

NamedDocument DocumentSource::NextFile() {
  const size_t place = file_++;
  const auto read = [&]() -> absl::StatusOr<v1::ScoreTextsRequest> {
    LS_ASSIGN_OR_RETURN(std::string first, ReadDocument(names_[place], terminal_));
    if (second_names_.empty()) return MakeItem(std::move(first), std::nullopt, options_.as_ids);
    LS_ASSIGN_OR_RETURN(std::string second, ReadDocument(second_names_[place], terminal_));
    return MakeItem(std::move(first), std::move(second), options_.as_ids);
  };
  return {names_[place], read()};
}

std::optional<NamedDocument> DocumentSource::NextLine() {
  for (; file_ < names_.size(); Close()) {
    if (stream_ == nullptr && !Open()) return Unreadable(absl::NotFoundError(std::strerror(errno)));
    std::string line;
    const absl::StatusOr<bool> is_line = ReadLine(*stream_, line);
    if (!is_line.ok()) return Unreadable(is_line.status());
    if (*is_line) return MakeDocument(absl::StrCat(names_[file_], ":", ++line_), line);
  }
  return std::nullopt;
}

NamedDocument DocumentSource::MakeDocument(std::string place, const std::string& line) const {
  std::string name = std::move(place);
  absl::StatusOr<LineTexts> texts = options_.form == Form::kJsonLines ? ParseJsonLine(line, options_.documents, name)
                                                                      : SplitLine(line, options_.documents);
  if (!texts.ok()) return {std::move(name), texts.status()};
  return {std::move(name), MakeItem(std::move(texts->first), std::move(texts->second), options_.as_ids)};
}

NamedDocument DocumentSource::Unreadable(absl::Status why) {
  NamedDocument unread = {names_[file_], std::move(why)};
  Close();
  return unread;
}

bool DocumentSource::Open() {
  if (names_[file_] == "-") {
    if (terminal_.input_is_terminal) terminal_.error << "Reading lines from standard input; press Ctrl-D to end it.\n";
    stream_ = &terminal_.input;
    return true;
  }
  opened_ = std::ifstream(names_[file_], std::ios::binary);
  stream_ = &opened_;
  return opened_.is_open();
}

void DocumentSource::Close() {
  stream_ = nullptr;
  line_ = 0;
  ++file_;
}

}  // namespace longshort::client
