// Loads any model of the family: the one place that knows which architectures there are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/load_options.h"
#include "models/loading/loaded_model.h"

namespace longshort::models {

struct LoadGuard {
  // Whether the model is wanted no more; asked often, by the thread that loads. Null: it is wanted.
  std::function<bool()> stop_requested = {};
  // Whether there is room for weights of so many bytes, on the host and on each GPU; asked once, before any of them is
  // read. Null: there is.
  std::function<absl::Status(int64_t host_bytes, int64_t gpu_bytes)> check_room = {};
};

// Loads a model directory by the "architecture" in its config.json. Reads every file once, the weights twice: for the
// fingerprint, then for their values.
// Errors: INVALID_ARGUMENT for an unknown architecture; what `guard` says, before any weights are read; CANCELLED when
// it asks to stop; or as the loader of the architecture says.
//   image_limits  of the images that a classifier is asked about
absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options,
                                      const LoadGuard& guard = {}, const ImageLimits& image_limits = {});

}  // namespace longshort::models
