// The input of a command: which files its arguments name, and the documents in them.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "clients/cpp/client.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// Selects the files of a folder. Files named on the command line are always included.
using WantedFile = absl::FunctionRef<bool(const std::string& name)>;

// Returns whether the name has an extension of JPEG, PNG or WebP, in upper or lower case.
bool IsImageName(const std::string& name);
inline bool AnyFile(const std::string& /*name*/) { return true; }

// The numbers of files and folders that are not read, by name or ending: {"*.gif", 2}, {".git/", 1}.
using LeftOut = absl::btree_map<std::string, int64_t>;

struct CollectedFiles {
  std::vector<std::string> names;
  LeftOut left_out;
};

// Writes a line such as "longshort: not read: 2 *.gif, 1 .git/" to `terminal.error`, if any file is left out.
void ReportLeftOut(const LeftOut& left_out, Terminal& terminal);

// How to handle a name (not a pattern) without a file.
enum class MissingFile { kIsAnError, kStays };

// Expands each argument, in order:
//   "-"           itself: standard input
//   a folder      the wanted files in it, recursively, sorted by name; leaves out hidden files and folders, what is
//                 no regular file, and links to a folder above the link; follows other links
//   a pattern     with *, ? or [...], if no file has this name: its matches, sorted by name, expanded in turn
//   anything else itself
// No argument means "-".
// Errors: NOT_FOUND naming the argument: it does not exist (unless `missing` is kStays: then reading it fails later),
// matches nothing, or is a folder that has no wanted file; or a folder cannot be read.
absl::StatusOr<CollectedFiles> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                            MissingFile missing = MissingFile::kIsAnError);

// Reads a file, or standard input for "-"; prompts for input at a terminal.
// Errors: NOT_FOUND naming the file and the reason; INVALID_ARGUMENT if it is larger than 1 GiB.
absl::StatusOr<std::string> ReadDocument(const std::string& name, Terminal& terminal);

// Makes an input of the bytes, or with `as_ids` of the decimal token ids in them, separated by white space or commas.
// Errors: INVALID_ARGUMENT naming the word that is not an id.
absl::StatusOr<v1::Input> MakeInput(std::string bytes, bool as_ids);

// How documents are read from files.
struct DocumentForm {
  // Each line is a document, without its line end (\n or \r\n). Otherwise each file is a document.
  bool lines = false;
  // Documents are lists of token ids.
  bool ids = false;
  // File of the second document of each pair; empty for single documents. Not valid with `lines`.
  std::string second = {};
};

// Iterates over the documents of files, in order. The name of a document is its file, or "file:line" with lines from 1.
//
// Not thread-safe.
class DocumentSource final {
 public:
  DocumentSource(std::vector<std::string> names, DocumentForm form, Terminal& terminal)
      : names_(std::move(names)), form_(std::move(form)), terminal_(terminal) {}

  // Returns the next document; nullopt at the end.
  // Errors of a document: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if its content is invalid.
  std::optional<Document> Next();

 private:
  absl::StatusOr<v1::ScoreTextsRequest> ReadItem(const std::string& name) const;
  std::optional<Document> NextLine();
  // Reads a line of the current file; false at its end.
  absl::StatusOr<bool> ReadLineOfFile(std::string& line);
  void NextFile();

  const std::vector<std::string> names_;
  const DocumentForm form_;
  Terminal& terminal_;

  // The position: the current file, its stream if open, and the number of lines read from it.
  size_t file_ = 0;
  std::unique_ptr<std::istream> stream_;
  int64_t line_ = 0;
};

}  // namespace longshort::client
