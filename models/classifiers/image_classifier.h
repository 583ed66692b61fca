// What the image classifiers have in common: images become one tensor, a network makes its logits, errors and counts
// become what Classifier promises.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/attention/item_attention.h"
#include "models/classifier.h"
#include "models/classifier_options.h"
#include "models/layers/tensor_move.h"
#include "models/weights/model_directory.h"

namespace longshort {

// The network of an architecture, ready to be served.
class ImageNetwork {
 public:
  virtual ~ImageNetwork() = default;

  // Whether images of this size, in pixels, can be run. Errors: INVALID_ARGUMENT with the size and the rule it breaks.
  virtual absl::Status CheckSize(int64_t height, int64_t width) const = 0;
  // images [batch, channels, height, width] of a size that can be run -> [batch, classes]. `attention` attends on its
  // device; null: the reference ops.
  virtual at::Tensor Logits(const at::Tensor& images, ItemAttention* attention) const = 0;
  // Of one image, as ClassifierCounts counts them.
  virtual int64_t MultiplyAdds(int64_t height, int64_t width) const = 0;
  // The same network elsewhere.
  virtual std::shared_ptr<const ImageNetwork> Copy(TensorMove& move) const = 0;
};

// What an architecture's config.json says about itself.
struct ImageNetworkFacts {
  std::string architecture;
  ImageShape image_shape;  // that its preprocessing makes
  int64_t classes = 0;
  int64_t parameters = 0;
  int64_t head_width = 0;  // of the widest heads
};

using TensorSource = std::function<at::Tensor(const std::string& name)>;

// Reads labels.txt, then runs `make` with the weights as loading code: without gradients, on `options.threads` threads.
// REQUIRES: CheckTensors has found what it asks for.
// Errors: those of MakeItemAttention, INVALID_ARGUMENT for labels.txt, INTERNAL for what `make` throws, UNAVAILABLE for
// weights that cannot be read or are written to meanwhile; each names the file or directory.
absl::StatusOr<std::unique_ptr<Classifier>> MakeImageClassifier(
    const ImageNetworkFacts& facts, const ModelDirectory& directory, const ClassifierOptions& options,
    const std::function<std::unique_ptr<ImageNetwork>(const TensorSource& read)>& make);

}  // namespace longshort
