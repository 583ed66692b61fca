#include "core/requests/classification_request.h"

#include <exception>
#include <new>

#include "absl/strings/str_cat.h"

namespace longshort::core {

absl::StatusOr<models::ClassifierItem> PrepareItem(const ItemPreparation& preparation) {
  try {
    return preparation();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("memory ran out while preparing the item");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the item cannot be prepared: ", error.what()));
  }
}

}  // namespace longshort::core
