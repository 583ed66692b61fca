// The input of a command: documents from files or standard input, one in each file or in each line.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// Returns the arguments, or "-" (standard input) if there are none.
std::vector<std::string> DocumentNames(std::vector<std::string> arguments);

// Reads a file, or standard input for "-"; prompts for input at a terminal.
// Errors: NOT_FOUND naming the file and the reason; INVALID_ARGUMENT if it is larger than 1 GiB.
absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal);

// Makes an input of the bytes, or with `as_ids` of the decimal token ids in them, separated by white space or commas.
// Errors: INVALID_ARGUMENT naming the word that is not an id.
absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids);

// A document, or a pair, that was read.
struct Document {
  // The file, "file:line" with lines from 1, or the field "name" of a line of JSON.
  std::string name;
  // The input, and the second input of a pair. Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if its
  // content is invalid.
  absl::StatusOr<v1::ScoreTextsRequest> item;
};

// How documents are read from files.
struct DocumentForm {
  // Each line is a document, without its line end (\n or \r\n). A tab separates two documents where both are required.
  bool lines = false;
  // Each line is {"text": ..., "second_text": ..., "name": ...}. The optional `name` replaces "file:line", in errors
  // too. `second_text` is ignored where the model takes one document, as other fields are.
  bool json_lines = false;
  // Documents are lists of token ids.
  bool ids = false;
  // The least and the most documents in an item: 1 or 2.
  int64_t least = 1;
  int64_t most = 1;

  // Otherwise each file is a document.
  bool by_lines() const { return lines || json_lines; }
};

// Iterates over the documents of files, in order. Not thread-safe.
class DocumentSource final {
 public:
  // `second_names` is empty, or has the second document's file for each of `names`.
  DocumentSource(std::vector<std::string> names, std::vector<std::string> second_names, const DocumentForm& form,
                 Terminal& terminal)
      : names_(std::move(names)), second_names_(std::move(second_names)), form_(form), terminal_(terminal) {}

  // Returns the next document; nullopt at the end.
  std::optional<Document> Next();

 private:
  absl::StatusOr<v1::ScoreTextsRequest> ReadItem(size_t file) const;
  std::optional<Document> NextLine();
  // Reads a line of the current file; false at its end.
  absl::StatusOr<bool> ReadLineOfFile(std::string& line);
  void NextFile();

  const std::vector<std::string> names_;
  const std::vector<std::string> second_names_;
  const DocumentForm form_;
  Terminal& terminal_;

  // The position: the current file, its stream if open, and the number of lines read from it.
  size_t file_ = 0;
  std::unique_ptr<std::istream> stream_;
  int64_t line_ = 0;
};

}  // namespace longshort::client
