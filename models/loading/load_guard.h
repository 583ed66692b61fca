// What loading a model asks while it goes on.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace longshort {

struct LoadGuard {
  // Whether the model is wanted no more; asked often, by the thread that loads. Null: it is wanted.
  std::function<bool()> stop_requested = {};
  // Whether there is room for weights of so many bytes; asked once, before any of them is read. Null: there is.
  std::function<absl::Status(int64_t weight_bytes)> check_room = {};
};

}  // namespace longshort
