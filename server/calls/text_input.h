// Tokens, or what becomes tokens.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace longshort {

// A view: whoever makes it keeps what it shows until the call that it stands in has been read.
struct TextInput {
  enum class Kind {
    kUnset,
    kText,   // UTF-8
    kBytes,  // of any value
    kIds,
  };

  Kind kind = Kind::kUnset;
  std::string_view text = {};          // of kText and kBytes
  absl::Span<const int32_t> ids = {};  // of kIds
};

}  // namespace longshort
