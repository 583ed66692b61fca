#include "models/layers/library_error.h"

#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "c10/util/Exception.h"

namespace longshort {
namespace {

// LibTorch has no exception of its own for it on a CPU; its allocator says nothing else.
constexpr std::string_view kNoMemory = "DefaultCPUAllocator: ";

}  // namespace

absl::Status LibraryError(std::string_view doing, const std::exception& error) {
  const auto* const of_library = dynamic_cast<const c10::Error*>(&error);
  const std::string what = of_library == nullptr ? error.what() : of_library->what_without_backtrace();
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                         absl::StrContains(what, std::string(kNoMemory));
  return {no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal,
          absl::StrCat("LibTorch failed ", std::string(doing), ": ", what)};
}

}  // namespace longshort
