// Loads any model of the family: the one place that knows which architectures there are.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/load_options.h"
#include "models/loading/load_guard.h"
#include "models/loading/loaded_model.h"

namespace longshort {

// Loads a model directory by the "architecture" in its config.json. Reads every file once, the weights twice: for the
// fingerprint, then for their values.
// Errors: INVALID_ARGUMENT for an unknown architecture; what `guard` says, before any weights are read; CANCELLED when
// it asks to stop; or as the loader of the architecture says.
//   image_limits  of the images that a classifier is asked about
absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options,
                                      const LoadGuard& guard = {}, const ImageLimits& image_limits = {});

}  // namespace longshort
