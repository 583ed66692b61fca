// Expands the files, folders and patterns of a command line.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort::client {

// Selects the files of a folder. Files named on the command line are always included.
using WantedFile = absl::FunctionRef<bool(const std::string& name)>;

// JPEG, PNG and WebP, which the server decodes, by the name's extension in any case.
bool IsImageName(const std::string& name);
inline bool AnyFile(const std::string& /*name*/) { return true; }

// How to handle a name (not a pattern) without a file.
enum class MissingFile { kIsAnError, kStays };

// Expands each argument, in order:
//   "-"           itself: standard input
//   a folder      the wanted files in it, recursively, sorted by name; skips hidden files and does not follow links
//   a pattern     with *, ? or [...], if no file has this name: its matches, sorted by name, expanded in turn
//   anything else itself
// Errors: NOT_FOUND naming the argument: it does not exist (unless `missing` is kStays: then reading it fails later),
// matches nothing, or is a folder that has no wanted file or cannot be read.
absl::StatusOr<std::vector<std::string>> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                                      MissingFile missing = MissingFile::kIsAnError);

}  // namespace longshort::client
