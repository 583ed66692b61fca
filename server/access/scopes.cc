#include "server/access/scopes.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/calls/field_error.h"

namespace longshort {
namespace {

constexpr std::array kScopes = {Scope::kInfer, Scope::kSessions, Scope::kManage, Scope::kObserve};

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
      return FieldError("scopes", Quoted(std::string(text)), kScopesRule);
    }
    scopes->Add(*scope);
  }
  return absl::OkStatus();
}

}  // namespace longshort
