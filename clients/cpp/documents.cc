#include "clients/cpp/documents.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace longshort::client {
namespace {

// The longest message that a server accepts.
constexpr size_t kMaxDocumentBytes = size_t{1} << 30;

// Opens a file, or standard input for "-". Errors: NOT_FOUND naming the file and the reason.
absl::StatusOr<std::unique_ptr<std::istream>> Open(const std::string& name, Terminal& terminal) {
  if (name == "-") {
    if (terminal.input_is_terminal) terminal.error << "Reading standard input; press Ctrl-D to end it.\n" << std::flush;
    return std::make_unique<std::istream>(terminal.input.rdbuf());
  }
  // Opening a folder succeeds; only reading it fails.
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return absl::NotFoundError(absl::StrCat(name, ": is a folder"));
  auto file = std::make_unique<std::ifstream>(name, std::ios::binary);
  if (!*file) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  return file;
}

// The error of a document (`what` is empty) or a line that was read in part: it failed, or has no end, such as
// /dev/zero.
absl::Status Unread(const std::string& name, absl::string_view what, const std::istream& stream) {
  const std::string file = name == "-" ? "standard input" : name;
  if (stream.bad()) return absl::NotFoundError(absl::StrCat(file, ": ", std::strerror(errno)));
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what, "more than ", kMaxDocumentBytes,
                                                 " bytes; no server accepts such a large message"));
}

// Reads a line without its line end (\n or \r\n); false at the end of the file. Errors: those of Unread.
absl::StatusOr<bool> ReadLine(const std::string& name, std::istream& input, std::string& line) {
  line.clear();
  std::array<char, size_t{1} << 16> block;
  while (line.size() <= kMaxDocumentBytes) {
    input.getline(block.data(), block.size());
    if (input.bad()) break;
    const bool is_whole = !input.fail() && !input.eof();  // gcount() then includes the \n, which is not in the block
    line.append(block.data(), static_cast<size_t>(input.gcount()) - (is_whole ? 1 : 0));
    if (is_whole || input.eof()) {
      const bool is_end = !is_whole && line.empty();
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return !is_end;
    }
    input.clear(input.rdstate() & ~std::ios::failbit);  // the block is full
  }
  return Unread(name, "a line of ", input);
}

// A document, or a pair.
struct Texts {
  std::string first;
  std::optional<std::string> second;
};

// Errors: INVALID_ARGUMENT if there is no tab between two documents.
absl::StatusOr<Texts> SplitLine(const std::string& line, const DocumentForm& form) {
  if (form.least == 1) return Texts{line, std::nullopt};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos)
    return absl::InvalidArgumentError("the line must contain two documents, separated by a tab");
  return Texts{line.substr(0, tab), line.substr(tab + 1)};
}

// Sets `name` if the object has one, even if an error follows. Errors: INVALID_ARGUMENT if the line is not as
// DocumentForm::json_lines requires.
absl::StatusOr<Texts> ParseJsonLine(const std::string& line, const DocumentForm& form, std::string& name) {
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) {
    return absl::InvalidArgumentError("the line is not a JSON object");
  }
  const auto& fields = object.fields();
  if (const auto found = fields.find("name"); found != fields.end() && found->second.has_string_value()) {
    name = found->second.string_value();
  }
  const auto text = [&](const char* field) -> absl::StatusOr<std::string> {
    const auto found = fields.find(field);
    if (found != fields.end() && found->second.has_string_value()) return found->second.string_value();
    return absl::InvalidArgumentError(absl::StrCat("the JSON object has no string field \"", field, "\""));
  };
  Texts texts;
  LS_ASSIGN_OR_RETURN(texts.first, text("text"));
  const auto second = fields.find("second_text");
  const bool has_second = second != fields.end() && !second->second.has_null_value();
  if (form.least == 2 || (form.most == 2 && has_second)) {
    LS_ASSIGN_OR_RETURN(texts.second, text("second_text"));
  }
  return texts;
}

// Errors: those of MakeInput.
absl::StatusOr<v1::ScoreTextsRequest> MakeItem(Texts texts, bool as_ids) {
  v1::ScoreTextsRequest item;
  LS_ASSIGN_OR_RETURN(*item.mutable_input(), MakeInput(std::move(texts.first), as_ids));
  if (texts.second.has_value()) {
    LS_ASSIGN_OR_RETURN(*item.mutable_second_input(), MakeInput(*std::move(texts.second), as_ids));
  }
  return item;
}

}  // namespace

std::vector<std::string> DocumentNames(std::vector<std::string> arguments) {
  if (arguments.empty()) arguments.emplace_back("-");
  return arguments;
}

absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<std::istream> stream, Open(name, terminal));
  std::string bytes;
  std::string block(size_t{1} << 16, '\0');
  while (stream->read(block.data(), static_cast<std::streamsize>(block.size())) || stream->gcount() > 0) {
    bytes.append(block, 0, static_cast<size_t>(stream->gcount()));
    if (bytes.size() > kMaxDocumentBytes) return Unread(name, "", *stream);
  }
  if (stream->bad()) return Unread(name, "", *stream);
  return bytes;
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

std::optional<Document> DocumentSource::Next() {
  if (form_.by_lines()) return NextLine();
  if (file_ == names_.size()) return std::nullopt;
  const size_t file = file_++;
  return Document{names_[file], ReadItem(file)};
}

absl::StatusOr<v1::ScoreTextsRequest> DocumentSource::ReadItem(size_t file) const {
  Texts texts;
  LS_ASSIGN_OR_RETURN(texts.first, ReadDocument(names_[file], terminal_));
  if (!second_names_.empty()) {
    LS_ASSIGN_OR_RETURN(texts.second, ReadDocument(second_names_[file], terminal_));
  }
  return MakeItem(std::move(texts), form_.ids);
}

std::optional<Document> DocumentSource::NextLine() {
  std::string line;
  for (; file_ < names_.size(); NextFile()) {
    const absl::StatusOr<bool> is_line = ReadLineOfFile(line);
    std::string name = names_[file_];
    if (!is_line.ok()) {  // stands for the rest of the file
      NextFile();
      return Document{std::move(name), is_line.status()};
    }
    if (!*is_line) continue;
    absl::StrAppend(&name, ":", ++line_);
    absl::StatusOr<Texts> texts = form_.json_lines ? ParseJsonLine(line, form_, name) : SplitLine(line, form_);
    if (!texts.ok()) return Document{std::move(name), texts.status()};
    return Document{std::move(name), MakeItem(*std::move(texts), form_.ids)};
  }
  return std::nullopt;
}

absl::StatusOr<bool> DocumentSource::ReadLineOfFile(std::string& line) {
  if (stream_ == nullptr) {
    LS_ASSIGN_OR_RETURN(stream_, Open(names_[file_], terminal_));
  }
  return ReadLine(names_[file_], *stream_, line);
}

void DocumentSource::NextFile() {
  stream_.reset();
  line_ = 0;
  ++file_;
}

}  // namespace longshort::client
