#include "clients/cpp/document_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace longshort {
namespace {

class FileSource final : public DocumentSource {
 public:
  FileSource(std::vector<std::string> names, std::vector<std::string> second_names, bool as_ids, Terminal& terminal)
      : names_(std::move(names)), second_names_(std::move(second_names)), as_ids_(as_ids), terminal_(terminal) {}

  int64_t total() const override { return static_cast<int64_t>(names_.size()); }

  std::optional<NamedDocument> Next() override {
    if (next_ == names_.size()) return std::nullopt;
    const size_t place = next_++;
    return NamedDocument{names_[place], ReadInputs(place)};
  }

 private:
  absl::StatusOr<DocumentInputs> ReadInputs(size_t place) const {
    absl::StatusOr<std::string> first = ReadDocument(names_[place], terminal_);
    if (!first.ok()) return first.status();
    if (second_names_.empty()) return MakeInputs(*std::move(first), std::nullopt, as_ids_);
    absl::StatusOr<std::string> second = ReadDocument(second_names_[place], terminal_);
    if (!second.ok()) return second.status();
    return MakeInputs(*std::move(first), *std::move(second), as_ids_);
  }

  const std::vector<std::string> names_;
  const std::vector<std::string> second_names_;
  const bool as_ids_;
  Terminal& terminal_;
  size_t next_ = 0;
};

// How many lines getline will find; none if the file cannot be read twice.
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

// Reads a line without its end (\n or \r\n); false at the end of the file. Errors: NOT_FOUND if it cannot be read;
// INVALID_ARGUMENT if it is longer than anything that a server takes: it may have no end.
absl::StatusOr<bool> ReadLine(std::istream& input, std::string& line) {
  line.clear();
  std::array<char, size_t{1} << 16> block;
  while (line.size() <= kMostDocumentBytes) {
    input.getline(block.data(), block.size());
    if (input.bad()) return absl::NotFoundError(std::strerror(errno));
    const bool is_whole = !input.fail() && !input.eof();  // then its \n was counted, and is not in the block
    line.append(block.data(), static_cast<size_t>(input.gcount()) - (is_whole ? 1 : 0));
    if (is_whole || input.eof()) {
      const bool is_end = !is_whole && line.empty();
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return !is_end;
    }
    input.clear(input.rdstate() & ~std::ios::failbit);  // the block is full
  }
  return absl::InvalidArgumentError(absl::StrCat("a line of more than ", kMostDocumentBytes, " bytes"));
}

// What a line holds.
struct LineTexts {
  std::string first;
  std::optional<std::string> second;
};

// Errors: INVALID_ARGUMENT if there is no tab between two documents.
absl::StatusOr<LineTexts> SplitLine(const std::string& line, int64_t documents) {
  if (documents == 1) return LineTexts{line, std::nullopt};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return absl::InvalidArgumentError("the line has no tab between two documents");
  return LineTexts{line.substr(0, tab), line.substr(tab + 1)};
}

// The field's string, if it has one.
std::optional<std::string> StringField(const google::protobuf::Struct& object, const std::string& field) {
  const auto entry = object.fields().find(field);
  if (entry == object.fields().end() || !entry->second.has_string_value()) return std::nullopt;
  return entry->second.string_value();
}

// Puts the name of the line's object, if it has one, into `name`, also before an error. Errors: INVALID_ARGUMENT if the
// line is not what LineForm::kJson says.
absl::StatusOr<LineTexts> ParseJsonLine(const std::string& line, int64_t documents, std::string& name) {
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) {
    return absl::InvalidArgumentError("the line is not a JSON object");
  }
  name = StringField(object, "name").value_or(std::move(name));
  std::optional<std::string> first = StringField(object, "text");
  std::optional<std::string> second = documents == 2 ? StringField(object, "second_text") : std::nullopt;
  if (!first.has_value() || (documents == 2 && !second.has_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the line's object has no string \"", first.has_value() ? "second_text" : "text", "\""));
  }
  return LineTexts{*std::move(first), std::move(second)};
}

class LineSource final : public DocumentSource {
 public:
  LineSource(std::vector<std::string> names, LineForm form, int64_t documents, bool as_ids, bool counts,
             Terminal& terminal)
      : names_(std::move(names)),
        form_(form),
        documents_(documents),
        as_ids_(as_ids),
        terminal_(terminal),
        total_known_(counts) {
    if (!counts) return;
    for (const std::string& name : names_) {
      const std::optional<int64_t> lines = CountLines(name);
      total_known_ = total_known_ && lines.has_value();
      total_ += lines.value_or(0);
    }
  }

  int64_t total() const override { return total_known_ ? total_ : 0; }

  std::optional<NamedDocument> Next() override {
    for (; file_ < names_.size(); Close()) {
      if (stream_ == nullptr && !Open()) return Unreadable(absl::NotFoundError(std::strerror(errno)));
      std::string line;
      const absl::StatusOr<bool> is_line = ReadLine(*stream_, line);
      if (!is_line.ok()) return Unreadable(is_line.status());
      if (*is_line) return MakeDocument(absl::StrCat(names_[file_], ":", ++line_), line);
    }
    return std::nullopt;
  }

 private:
  // The file being read, in the place of what could not be read of it.
  NamedDocument Unreadable(absl::Status why) {
    NamedDocument unread = {names_[file_], std::move(why)};
    Close();
    return unread;
  }

  bool Open() {
    if (names_[file_] == "-") {
      if (terminal_.input_is_terminal) terminal_.error << "Reading lines from standard input; Ctrl-D ends it.\n";
      stream_ = &terminal_.input;
      return true;
    }
    opened_ = std::ifstream(names_[file_], std::ios::binary);
    stream_ = &opened_;
    return opened_.is_open();
  }

  void Close() {
    stream_ = nullptr;
    line_ = 0;
    ++file_;
  }

  NamedDocument MakeDocument(std::string place, const std::string& line) const {
    std::string name = std::move(place);
    absl::StatusOr<LineTexts> texts =
        form_ == LineForm::kJson ? ParseJsonLine(line, documents_, name) : SplitLine(line, documents_);
    if (!texts.ok()) return {std::move(name), texts.status()};
    return {std::move(name), MakeInputs(std::move(texts->first), std::move(texts->second), as_ids_)};
  }

  const std::vector<std::string> names_;
  const LineForm form_;
  const int64_t documents_;
  const bool as_ids_;
  Terminal& terminal_;
  int64_t total_ = 0;
  bool total_known_;

  // Where reading is: the file, its stream once it is open, and the lines that were read of it.
  size_t file_ = 0;
  std::ifstream opened_;
  std::istream* stream_ = nullptr;
  int64_t line_ = 0;
};

}  // namespace

std::unique_ptr<DocumentSource> MakeFileSource(std::vector<std::string> names, std::vector<std::string> second_names,
                                               bool as_ids, Terminal& terminal) {
  return std::make_unique<FileSource>(std::move(names), std::move(second_names), as_ids, terminal);
}

std::unique_ptr<DocumentSource> MakeLineSource(std::vector<std::string> names, LineForm form, int64_t documents,
                                               bool as_ids, bool counts, Terminal& terminal) {
  return std::make_unique<LineSource>(std::move(names), form, documents, as_ids, counts, terminal);
}

}  // namespace longshort
