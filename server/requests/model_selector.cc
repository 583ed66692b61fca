#include "server/requests/model_selector.h"

#include "server/requests/field_error.h"

namespace longshort {

absl::Status CheckModelSelector(const v1::ModelSelector& selector) {
  constexpr int64_t kMostNameBytes = 256;
  if (selector.version() < 0) return FieldError("model.version", selector.version(), "at least 0");
  return CheckFieldRange("number of bytes of model.name", static_cast<int64_t>(selector.name().size()), 0,
                         kMostNameBytes);
}

}  // namespace longshort
