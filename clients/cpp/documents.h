// The input of a command: documents from files or standard input, one in each file or in each line.
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

// Returns the arguments, or "-" (standard input) if there are none.
std::vector<std::string> DocumentNames(std::vector<std::string> arguments);

// The longest message that a server accepts.
inline constexpr size_t kMaxDocumentBytes = size_t{1} << 30;

// Reads a file, or standard input for "-"; prompts for input at a terminal.
// Errors: NOT_FOUND naming the file and the reason; INVALID_ARGUMENT if it is larger than 1 GiB.
absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal);

// Makes an input of the bytes, or with `as_ids` of the decimal token ids in them, separated by white space or commas.
// Errors: INVALID_ARGUMENT naming the word that is not an id.
absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids);

// The item of one document, or of two. Errors: those of MakeInput.
absl::StatusOr<v1::ScoreTextsRequest> MakeItem(std::string first, std::optional<std::string> second, bool as_ids);

// Checks the document's length in tokens before it is sent. With `truncate`, cuts it to one token more than the limit,
// its last: the message stays small, and the server still reports the truncation. Of ids, it is the document's last.
// Does not check word tokenizers, whose tokens only the server can count. Errors: INVALID_ARGUMENT with the length, the
// limit and what to do.
absl::Status FitDocument(const v1::Model& model, bool truncate, v1::ScoreTextsRequest& item);

struct NamedDocument {
  // The file, or "file:line" with lines from 1.
  std::string name;
  // Without id and options. Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if its content is invalid.
  absl::StatusOr<v1::ScoreTextsRequest> item;
};

// The documents in each item: 1 or 2.
struct Documents {
  int64_t least = 1;
  int64_t most = 1;
};

// Iterates over the documents of files, in order. Not thread-safe.
class DocumentSource final {
 public:
  enum class Form {
    // The file is the document.
    kFile,
    // Each line is a document, without its line end (\n or \r\n). A tab separates two documents where both are
    // required.
    kLines,
    // Each line is {"text": ..., "second_text": ..., "name": ...}. The optional `name` replaces "file:line", in errors
    // too. `second_text` is ignored where the model takes one document, as other fields are.
    kJsonLines,
  };
  struct Options {
    Form form = Form::kFile;
    Documents documents = {};
    bool as_ids = false;
    // Whether to count the lines of all files first, for total().
    bool counts = false;
  };

  // `second_names` is empty, or has the second document's file for each of `names`.
  DocumentSource(std::vector<std::string> names, std::vector<std::string> second_names, const Options& options,
                 Terminal& terminal);

  // The number of documents; 0 if it is unknown (lines of standard input).
  int64_t total() const { return total_; }
  // Returns the next document; nullopt at the end.
  std::optional<NamedDocument> Next();

 private:
  NamedDocument NextFile();
  std::optional<NamedDocument> NextLine();
  NamedDocument MakeDocument(std::string place, const std::string& line) const;
  // Stands for the rest of a file that cannot be read.
  NamedDocument Unreadable(absl::Status why);
  bool Open();
  void Close();

  const std::vector<std::string> names_;
  const std::vector<std::string> second_names_;
  const Options options_;
  Terminal& terminal_;
  int64_t total_ = 0;

  // The position: the current file, its stream if open, and the number of lines read from it.
  size_t file_ = 0;
  std::ifstream opened_;
  std::istream* stream_ = nullptr;
  int64_t line_ = 0;
};

}  // namespace longshort::client
