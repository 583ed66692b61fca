// How a family loads its models, and what the families share for that.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "models/classifier.h"
#include "models/families/load_model.h"
#include "models/images/image_header.h"
#include "models/load_options.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// The networks of a family. models/families/CMakeLists.txt lists the families; the function Loader() in the namespace
// of a family makes its entry.
struct FamilyLoader {
  std::string_view architecture;  // in config.json
  absl::StatusOr<LoadedModel> (*load)(const ModelDirectory& directory, const LoadOptions& options,
                                      const ImageLimits& image_limits);
  // Called before `load`, without the weights' values.
  absl::StatusOr<WeightSizes> (*sizes)(const ModelDirectory& directory, const LoadOptions& options);
};

// All families, in the order of the list.
std::vector<FamilyLoader> FamilyLoaders();

// The sizes of a classifier.
//   packs         a CPU packs its weights, while the host still has what it read in float32
//   cpu_elements, gpu_elements  numbers that a CPU, or a GPU, needs in addition to the file's
WeightSizes ClassifierSizes(const ModelDirectory& directory, const LoadOptions& options, bool packs,
                            int64_t cpu_elements = 0, int64_t gpu_elements = 0);

// FamilyLoader::sizes of an image classifier that keeps nothing in addition to the file's numbers.
absl::StatusOr<WeightSizes> ImageSizes(const ModelDirectory& directory, const LoadOptions& options);

// Adds the preprocessing that config.json names to an image classifier. Errors: those of ReadImagePreprocessing.
absl::StatusOr<LoadedModel> WithPreprocessing(ClassifierWeights weights, const ModelDirectory& directory,
                                              const ImageLimits& image_limits);

// FamilyLoader::load of an image classifier, whose network `load` loads.
template <absl::StatusOr<ClassifierWeights> (*load)(const ModelDirectory& directory, const LoadOptions& options)>
absl::StatusOr<LoadedModel> LoadImages(const ModelDirectory& directory, const LoadOptions& options,
                                       const ImageLimits& image_limits) {
  LS_ASSIGN_OR_RETURN(ClassifierWeights weights, load(directory, options));
  return WithPreprocessing(std::move(weights), directory, image_limits);
}

}  // namespace longshort::models
