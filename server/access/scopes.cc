#include "server/access/scopes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

constexpr std::array kScopes = {Scope::kInfer, Scope::kSessions, Scope::kManage, Scope::kObserve};

constexpr size_t kMaxNameBytes = 256;  // as in calls

}  // namespace

const char* NameOf(Scope scope) {
  switch (scope) {
    case Scope::kInfer:
      return "infer";
    case Scope::kSessions:
      return "sessions";
    case Scope::kManage:
      return "manage";
    case Scope::kObserve:
      return "observe";
  }
  return "";
}

absl::Status ReadScopes(std::string_view text, ScopeSet* scopes) {
  *scopes = ScopeSet();
  for (const absl::string_view name : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const auto* const scope =
        std::find_if(kScopes.begin(), kScopes.end(), [name](Scope candidate) { return name == NameOf(candidate); });
    if (scope == kScopes.end() || scopes->Has(*scope)) {
      return FieldError("scopes", Quoted(text), kScopesRule);
    }
    scopes->Add(*scope);
  }
  return absl::OkStatus();
}

absl::Status ModelPatterns::Read(std::string_view text, ModelPatterns* patterns) {
  ModelPatterns read;
  read.all_ = false;
  for (const absl::string_view piece : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    Pattern pattern{.begin = std::string(piece), .open = !piece.empty() && piece.back() == '*'};
    if (pattern.open) pattern.begin.pop_back();
    const bool empty = pattern.begin.empty() && !pattern.open;
    if (empty || pattern.begin.size() > kMaxNameBytes || pattern.begin.find('*') != std::string::npos) {
      return FieldError("models", Quoted(text),
                        "names separated by commas, each of 1 to 256 bytes and without *, except at its end");
    }
    read.all_ |= pattern.open && pattern.begin.empty();
    read.patterns_.push_back(std::move(pattern));
  }
  *patterns = std::move(read);
  return absl::OkStatus();
}

bool ModelPatterns::Allow(std::string_view model) const {
  return all_ || std::any_of(patterns_.begin(), patterns_.end(), [model](const Pattern& pattern) {
           return pattern.open ? model.starts_with(pattern.begin) : model == pattern.begin;
         });
}

}  // namespace longshort::server
