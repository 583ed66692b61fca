// Expands the files, folders and patterns of a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "clients/cpp/terminal.h"

namespace longshort::client {

// Selects the files of a folder. Files named on the command line are always included.
using WantedFile = absl::FunctionRef<bool(const std::string& name)>;

// JPEG, PNG and WebP, which the server decodes, by the name's extension in any case.
bool IsImageName(const std::string& name);
inline bool AnyFile(const std::string& /*name*/) { return true; }

// How many files and folders in folders are not read, by their name or by its ending: {"*.gif", 2}, {".git/", 1}.
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
// Errors: NOT_FOUND naming the argument: it does not exist (unless `missing` is kStays: then reading it fails later),
// matches nothing, or is a folder that has no wanted file; or a folder cannot be read.
absl::StatusOr<CollectedFiles> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                            MissingFile missing = MissingFile::kIsAnError);

}  // namespace longshort::client
