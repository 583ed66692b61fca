#include "server/calls/model_reference.h"

#include "absl/strings/str_cat.h"
#include "server/calls/field_error.h"

namespace longshort {

absl::Status CheckModelReference(const ModelReference& reference, const CallNames& names) {
  constexpr int64_t kMostNameBytes = 256;
  if (reference.version < 0) return FieldError(names.Of(CallField::kModelVersion), reference.version, "at least 0");
  const auto bytes = static_cast<int64_t>(reference.name.size());
  if (bytes <= kMostNameBytes) return absl::OkStatus();
  return CheckFieldRange(absl::StrCat("number of bytes of ", names.Of(CallField::kModelName)), bytes, 0,
                         kMostNameBytes);
}

}  // namespace longshort
