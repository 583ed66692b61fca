// The documents that a command scores: one of each file, or of each line of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/terminal.h"

namespace longshort {

struct NamedDocument {
  // The file, or "file:line" with lines from 1.
  std::string name;
  // Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if it does not hold what it should.
  absl::StatusOr<DocumentInputs> inputs;
};

// Thread: one at a time.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  // How many there are; 0 if only reading tells (standard input).
  virtual int64_t total() const = 0;
  // The next one in order; none at the end.
  virtual std::optional<NamedDocument> Next() = 0;
};

// Each file is a document. `second_names` is empty, or the i-th names the second document of the i-th file.
// REQUIRES: second_names has no or as many names as names.
std::unique_ptr<DocumentSource> MakeFileSource(std::vector<std::string> names, std::vector<std::string> second_names,
                                               bool as_ids, Terminal& terminal);

enum class LineForm {
  // The line is the document, without its end (\n or \r\n). Two documents have a tab between.
  kText,
  // {"text": ..., "second_text": ..., "name": ...}; `name`, which may be left out, takes the place of "file:line", also
  // where there is no text. Other fields are passed over.
  kJson,
};

// Each line of each file is an item of `documents` documents. Lines are read as they are asked for; with `counts`, the
// files are read before, to know the total.
std::unique_ptr<DocumentSource> MakeLineSource(std::vector<std::string> names, LineForm form, int64_t documents,
                                               bool as_ids, bool counts, Terminal& terminal);

}  // namespace longshort
