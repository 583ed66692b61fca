// Image files as calls of ClassifyImage: several images in each, within what the server takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

// Some of the files, in order.
struct ImageBatch {
  std::vector<std::string> names;
  // One for each name; the error of an image that is not in the request, because it cannot be read or is too large.
  std::vector<v1::ImageResult> results;
  // The other images.
  v1::ClassifyImageRequest request;
};

// Puts the answer's results in the places of the images that were sent. Errors: INTERNAL if there are more or fewer.
absl::Status PlaceResults(const v1::ClassifyImageResponse& response, ImageBatch& batch);

// Reads files as batches are asked for, so that a few batches are in memory and not all images.
class ImageBatches final {
 public:
  struct Options {
    // Images in a batch: enough to fill the model's own batches, few enough to see progress.
    int32_t images = 8;
    // Bytes of a batch's images, if it has more than one.
    int64_t bytes = int64_t{4} << 20;
  };

  // `limits` as GetModel tells them; `options` are cut to them. `request` without images: what every call asks.
  ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options,
               v1::ClassifyImageRequest request, Terminal& terminal);

  bool AtEnd() const { return next_ == names_.size(); }
  // REQUIRES: not AtEnd().
  ImageBatch Next();

 private:
  // Errors: NOT_FOUND if it cannot be read, INVALID_ARGUMENT if it is larger than the server takes.
  absl::StatusOr<std::string> Read(const std::string& name) const;

  const std::vector<std::string> names_;
  const int64_t image_bytes_limit_;
  const int32_t images_per_batch_;
  const int64_t bytes_per_batch_;
  const v1::ClassifyImageRequest request_;
  Terminal& terminal_;
  size_t next_ = 0;
  // The file at next_ if it was read and did not fit in the batch before.
  std::optional<absl::StatusOr<std::string>> waiting_;
};

}  // namespace longshort::client
