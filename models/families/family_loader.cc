#include "models/families/family_loader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strict_json.h"
#include "models/images/image_preprocessor.h"
#include "models/weights/image_preprocessing_config.h"

namespace longshort::models {

WeightSizes ClassifierSizes(const ModelDirectory& directory, const LoadOptions& options, bool packs,
                            int64_t cpu_elements, int64_t gpu_elements) {
  const int64_t elements = directory.weights.Elements(), read_bytes = WeightBytes(elements, "fp32");
  const std::vector<WorkerDevice> devices = options.DevicesOrCpu();
  const bool has_cpu = std::any_of(devices.begin(), devices.end(),
                                   [](const WorkerDevice& device) { return device.kind == DeviceKind::kCpu; });
  // CPUs keep some of the weights in float32 with any precision.
  const int64_t cpu_bytes = has_cpu ? read_bytes + WeightBytes(cpu_elements, "fp32") : 0;
  return {.loading_bytes = packs ? read_bytes + cpu_bytes : read_bytes,
          .host_bytes = cpu_bytes,
          .gpu_bytes = WeightBytes(elements + gpu_elements, options.precision == "int8" ? "bf16" : options.precision)};
}

absl::StatusOr<WeightSizes> ImageSizes(const ModelDirectory& directory, const LoadOptions& options) {
  return ClassifierSizes(directory, options, /*packs=*/true);
}

absl::StatusOr<LoadedModel> WithPreprocessing(ClassifierWeights weights, const ModelDirectory& directory,
                                              const ImageLimits& image_limits) {
  LoadedClassifier loaded;
  loaded.weights = std::move(weights);
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(directory.config_text, directory.config_path()));
  LS_ASSIGN_OR_RETURN(const ImagePreprocessingConfig preprocessing, ReadImagePreprocessing(fields));
  loaded.preprocessor = MakeImagePreprocessor(preprocessing, image_limits);
  return loaded;
}

}  // namespace longshort::models
