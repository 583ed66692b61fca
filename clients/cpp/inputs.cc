#include "clients/cpp/inputs.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace longshort::client {
namespace {

namespace fs = std::filesystem;

// Describe lists at most this many labels and sums up the rest.
constexpr size_t kMaxLabels = 10;

// Returns "*.gif", ".*.png" for a hidden file, or the whole name if it has no ending.
std::string LabelOf(const std::string& name) {
  const std::string hidden = name.front() == '.' ? "." : "";
  const fs::path rest = name.substr(hidden.size());
  const std::string ending = absl::AsciiStrToLower(rest.extension().string());
  return ending.empty() ? name : absl::StrCat(hidden, "*", ending);
}

// Lists the largest counts first.
std::string Describe(const LeftOut& left_out) {
  std::vector<std::pair<std::string, int64_t>> sorted(left_out.begin(), left_out.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  int64_t others = 0;
  for (const auto& [label, count] : sorted) {
    if (parts.size() < kMaxLabels) {
      parts.push_back(absl::StrCat(count, " ", label));
    } else {
      others += count;
    }
  }
  if (others > 0) parts.push_back(absl::StrCat("and ", others, " others"));
  return absl::StrJoin(parts, ", ");
}

absl::Status Unreadable(const fs::path& folder, const std::error_code& error) {
  return absl::NotFoundError(absl::StrCat(folder.string(), ": ", error.message()));
}

// Adds the wanted files below a folder. `above` has the folders that lead to it, without links.
absl::Status AddFolder(const fs::path& folder, WantedFile wanted, std::vector<fs::path>& above, CollectedFiles& found) {
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error) return Unreadable(folder, error);
  if (std::find(above.begin(), above.end(), place) != above.end()) {
    ++found.left_out[absl::StrCat(folder.string(), " (a link to a folder above it)")];
    return absl::OkStatus();
  }
  above.push_back(place);
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;  // then it is neither
    const bool is_folder = entry->is_directory(unknown);
    if (name.front() == '.') {
      ++found.left_out[is_folder ? name + "/" : LabelOf(name)];
    } else if (is_folder) {
      LS_RETURN_IF_ERROR(AddFolder(entry->path(), wanted, above, found));
    } else if (entry->is_regular_file(unknown) && wanted(entry->path().string())) {
      found.names.push_back(entry->path().string());
    } else {
      ++found.left_out[LabelOf(name)];
    }
  }
  above.pop_back();
  return error ? Unreadable(folder, error) : absl::OkStatus();
}

absl::Status AddSortedFolder(const std::string& folder, WantedFile wanted, CollectedFiles& found) {
  CollectedFiles own;
  std::vector<fs::path> above;
  LS_RETURN_IF_ERROR(AddFolder(folder, wanted, above, own));
  if (own.names.empty()) {
    const std::string not_read = Describe(own.left_out);
    return absl::NotFoundError(absl::StrCat(folder, ": the folder has no file of the right kind",
                                            not_read.empty() ? "" : "; not read: ", not_read));
  }
  std::sort(own.names.begin(), own.names.end());
  found.names.insert(found.names.end(), own.names.begin(), own.names.end());
  for (const auto& [label, count] : own.left_out) found.left_out[label] += count;
  return absl::OkStatus();
}

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

// Returns the matches, sorted. Errors: NOT_FOUND if there are none, or a folder cannot be searched.
absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t matches = {};
  const absl::Cleanup free_matches = [&] { globfree(&matches); };
  const auto end_unless_missing = [](const char* /*folder*/, int error) {
    return error == ENOENT || error == ENOTDIR ? 0 : error;
  };
  const int result = glob(pattern.c_str(), 0, end_unless_missing, &matches);
  if (result == GLOB_NOMATCH) return absl::NotFoundError(absl::StrCat(pattern, ": ", std::strerror(ENOENT)));
  if (result != 0) return absl::NotFoundError(absl::StrCat(pattern, ": a folder cannot be read"));
  return std::vector<std::string>(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
}

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
  if (fs::is_directory(name, ignored)) return absl::NotFoundError(absl::StrCat(name, ": is a folder"));
  auto file = std::make_unique<std::ifstream>(name, std::ios::binary);
  if (!*file) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  return file;
}

// Returns the error of a document (`what` is empty) or a line that was read in part: reading failed, or does not end,
// as for /dev/zero.
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

}  // namespace

bool IsImageName(const std::string& name) {
  constexpr std::array kExtensions = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"};
  const std::string extension = absl::AsciiStrToLower(fs::path(name).extension().string());
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

void ReportLeftOut(const LeftOut& left_out, Terminal& terminal) {
  if (!left_out.empty()) terminal.error << "longshort: not read: " << Describe(left_out) << "\n";
}

absl::StatusOr<CollectedFiles> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                            MissingFile missing) {
  CollectedFiles found;
  if (arguments.empty()) found.names.emplace_back("-");
  for (const std::string& argument : arguments) {
    std::vector<std::string> names = {argument};
    std::error_code ignored;
    if (argument != "-" && !fs::exists(argument, ignored)) {
      if (IsPattern(argument)) {
        LS_ASSIGN_OR_RETURN(names, Matches(argument));
      } else if (missing == MissingFile::kIsAnError) {
        return absl::NotFoundError(absl::StrCat(argument, ": ", std::strerror(ENOENT)));
      }
    }
    for (const std::string& name : names) {
      if (fs::is_directory(name, ignored)) {
        LS_RETURN_IF_ERROR(AddSortedFolder(name, wanted, found));
      } else {
        found.names.push_back(name);
      }
    }
  }
  return found;
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
  if (form_.lines) return NextLine();
  if (file_ == names_.size()) return std::nullopt;
  const std::string& name = names_[file_++];
  return Document{name, ReadItem(name)};
}

absl::StatusOr<v1::ScoreTextsRequest> DocumentSource::ReadItem(const std::string& name) const {
  v1::ScoreTextsRequest item;
  LS_ASSIGN_OR_RETURN(std::string text, ReadDocument(name, terminal_));
  LS_ASSIGN_OR_RETURN(*item.mutable_input(), MakeInput(std::move(text), form_.ids));
  if (form_.second.empty()) return item;
  LS_ASSIGN_OR_RETURN(text, ReadDocument(form_.second, terminal_));
  LS_ASSIGN_OR_RETURN(*item.mutable_second_input(), MakeInput(std::move(text), form_.ids));
  return item;
}

std::optional<Document> DocumentSource::NextLine() {
  std::string line;
  for (; file_ < names_.size(); NextFile()) {
    const std::string& name = names_[file_];
    const absl::StatusOr<bool> is_line = ReadLineOfFile(line);
    if (!is_line.ok()) {  // stands for the rest of the file
      NextFile();
      return Document{name, is_line.status()};
    }
    if (!*is_line) continue;
    Document document{absl::StrCat(name, ":", ++line_), v1::ScoreTextsRequest()};
    absl::StatusOr<v1::Input> input = MakeInput(std::move(line), form_.ids);
    if (input.ok()) {
      *document.item->mutable_input() = *std::move(input);
    } else {
      document.item = input.status();
    }
    return document;
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
