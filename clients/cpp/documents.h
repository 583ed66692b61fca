// What a command reads: files named on the command line, or standard input; as what a model takes. One document of each
// file, or of each line of a file.
#pragma once

#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// "-", standard input, if no file is named.
std::vector<std::string> DocumentNames(std::vector<std::string> arguments);

// No server takes a longer message.
inline constexpr size_t kMaxDocumentBytes = size_t{1} << 30;

// The whole of a file, or of standard input for "-". Tells a person at a terminal that input is awaited.
// Errors: NOT_FOUND naming the file and the reason; INVALID_ARGUMENT if it has more than 1 GiB.
absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal);

// The bytes as they are; with `as_ids`, the decimal token ids that they list, separated by white space or commas.
// Errors: INVALID_ARGUMENT naming the word that is no id.
absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids);

// The item of one document, or of two. Errors: those of MakeInput.
absl::StatusOr<v1::ScoreTextsRequest> MakeItem(std::string first, std::optional<std::string> second, bool as_ids);

// Refuses a document that the server would refuse for its tokens, and with `truncate` cuts one so that the server still
// sees that it goes on: what is too long is mostly too large a message, too.
// Documents whose tokens are words are left as they are: only the server knows how long they are.
// Errors: INVALID_ARGUMENT with the length, the limit and what to do.
absl::Status FitDocument(const v1::Model& model, bool truncate, v1::ScoreTextsRequest& item);

struct NamedDocument {
  // The file, or "file:line" with lines from 1.
  std::string name;
  // Without id and options. Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if it does not hold what it
  // should.
  absl::StatusOr<v1::ScoreTextsRequest> item;
};

// The documents of files, in order. Thread: one at a time.
class DocumentSource final {
 public:
  enum class Form {
    // The file is the document.
    kFile,
    // A line is the document, without its end (\n or \r\n). Two documents have a tab between.
    kLines,
    // {"text": ..., "second_text": ..., "name": ...}; `name`, which may be left out, takes the place of "file:line",
    // also where there is no text. Other fields are passed over.
    kJsonLines,
  };
  struct Options {
    Form form = Form::kFile;
    // Of an item of lines: 1 or 2.
    int64_t documents = 1;
    bool as_ids = false;
    // Reads files of lines before, to know the total.
    bool counts = false;
  };

  // `second_names` is empty, or the i-th names the second document of the i-th file.
  DocumentSource(std::vector<std::string> names, std::vector<std::string> second_names, const Options& options,
                 Terminal& terminal);

  // How many there are; 0 if that is not known before reading (lines of standard input).
  int64_t total() const { return total_; }
  // The next one; none at the end.
  std::optional<NamedDocument> Next();

 private:
  NamedDocument NextFile();
  std::optional<NamedDocument> NextLine();
  NamedDocument MakeDocument(std::string place, const std::string& line) const;
  // The file being read, in the place of what could not be read of it.
  NamedDocument Unreadable(absl::Status why);
  bool Open();
  void Close();

  const std::vector<std::string> names_;
  const std::vector<std::string> second_names_;
  const Options options_;
  Terminal& terminal_;
  int64_t total_ = 0;

  // Where reading is: the file, its stream once it is open, and the lines that were read of it.
  size_t file_ = 0;
  std::ifstream opened_;
  std::istream* stream_ = nullptr;
  int64_t line_ = 0;
};

}  // namespace longshort::client
