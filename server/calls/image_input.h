// An image as it came.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>

#include "models/classifier.h"

namespace longshort {

struct ImageInput {
  // A file, or pixels; nothing if the client gave neither. Views of what `owner` has.
  std::variant<std::monostate, std::string_view, RawImage> content;
  // Held until the image is an item, and no longer: several images should not share one if they are large.
  std::shared_ptr<const void> owner;
  // Memory that it takes meanwhile.
  int64_t bytes = 0;
};

}  // namespace longshort
