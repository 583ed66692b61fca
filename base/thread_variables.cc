#include "base/thread_variables.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace longshort {
namespace {

constexpr const char* kNames[] = {"OMP_PROC_BIND=", "OMP_PLACES=", "GOMP_CPU_AFFINITY=", "OMP_THREAD_LIMIT="};
constexpr size_t kMaxRemoved = 8;  // a variable can be there twice
const char* removed[kMaxRemoved] = {};

// These two run before the constructors of all libraries: they may call nothing, and a sanitizer is not there yet.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) bool IsOneOfThem(const char* variable) {
  for (const char* name : kNames) {
    size_t same = 0;
    while (name[same] != '\0' && name[same] == variable[same]) ++same;
    if (name[same] == '\0') return true;
  }
  return false;
}

__attribute__((no_sanitize("address"), no_sanitize("thread"))) void Remove(int /*count*/, char** /*arguments*/,
                                                                           char** environment) {
  size_t count = 0;
  char** kept = environment;
  for (char** next = environment; *next != nullptr; ++next) {
    if (count < kMaxRemoved && IsOneOfThem(*next)) {
      removed[count++] = *next;
    } else {
      *kept++ = *next;
    }
  }
  *kept = nullptr;
}

__attribute__((section(".preinit_array"), used)) void (*const kRemove)(int, char**, char**) = Remove;

}  // namespace

const std::vector<std::string>& RemovedThreadVariables() {
  static const auto& variables = *new std::vector<std::string>([] {
    std::vector<std::string> found;
    for (const char* variable : removed) {
      if (variable == nullptr) break;
      const absl::string_view value = absl::string_view(variable).substr(absl::string_view(variable).find('=') + 1);
      if (!value.empty() && !absl::EqualsIgnoreCase(value, "false")) found.emplace_back(variable);
    }
    return found;
  }());
  return variables;
}

}  // namespace longshort
