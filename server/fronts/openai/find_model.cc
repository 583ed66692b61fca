#include "server/fronts/openai/find_model.h"

#include <memory>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longshort::server {

ModelReference ReferenceOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  int64_t version = 0;
  if (slash == std::string::npos || !absl::SimpleAtoi(name.substr(slash + 1), &version) || version < 1)
    return {.name = name};
  return {.name = name.substr(0, slash), .version = version};
}

absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind) {
  if (!name.empty()) return ReferenceOf(name);
  std::set<std::string> names;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    if (is_of_kind(*served) && record.caller().MayUse(served->name)) names.insert(served->name);
  }
  if (names.size() == 1) return ModelReference{.name = *names.begin()};
  if (names.empty()) return absl::NotFoundError(absl::StrCat("the server has no ", kind));
  return absl::InvalidArgumentError(
      absl::StrCat("the request names no model; `model` in JSON, or ?model=NAME in the address, must name one of the ",
                   kind, ": ", absl::StrJoin(names, ", ")));
}

}  // namespace longshort::server
