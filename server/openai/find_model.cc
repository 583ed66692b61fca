#include "server/openai/find_model.h"

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longshort::server {

absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind) {
  if (!name.empty()) return ModelReference{.name = name};
  std::set<std::string> names;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    if (is_of_kind(*served) && record.caller().MayUse(served->name)) names.insert(served->name);
  }
  if (names.size() == 1) return ModelReference{.name = *names.begin()};
  if (names.empty()) return absl::NotFoundError(absl::StrCat("the server has no ", kind));
  return absl::InvalidArgumentError(
      absl::StrCat("the request names no model; it must name one of the ", kind, ": ", absl::StrJoin(names, ", ")));
}

}  // namespace longshort::server
