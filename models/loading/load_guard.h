// What loading a model asks while it goes on.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace longshort {

struct LoadGuard {
  // Whether the model is wanted no more; asked often, by the thread that loads. Null: it is wanted.
  std::function<bool()> stop_requested = {};
  // Whether there is room for weights of so many bytes, on the host and on each GPU; asked once, before any of them is
  // read. Null: there is.
  std::function<absl::Status(int64_t host_bytes, int64_t gpu_bytes)> check_room = {};
};

}  // namespace longshort
