// Which files a command line names: files, folders and patterns.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort::client {

// Whether a file that was found in a folder is wanted. A file that is named itself always is.
using WantedFile = absl::FunctionRef<bool(const std::string& name)>;

// JPEG, PNG and WebP, which the server decodes, by the name's extension in any case.
bool IsImageName(const std::string& name);
inline bool AnyFile(const std::string& /*name*/) { return true; }

// What becomes of a name, not of a pattern, that no file has.
enum class MissingFile { kIsAnError, kStays };

// Each argument in order as the files that it stands for:
//   "-"           itself: standard input
//   a folder      the wanted files in it and in its folders, by name; without hidden ones, and without entering links
//   a pattern     with *, ? or [...], that is no file's own name: what it matches, by name, each as if it were named
//   anything else itself
// Errors: NOT_FOUND naming the argument: it does not exist (unless it stays, to fail when it is read), matches nothing,
// or is a folder without a wanted file or one that cannot be read.
absl::StatusOr<std::vector<std::string>> CollectFiles(absl::Span<const std::string> arguments, WantedFile wanted,
                                                      MissingFile missing = MissingFile::kIsAnError);

}  // namespace longshort::client
