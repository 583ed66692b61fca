// Groups image files into calls of ClassifyImage, within the server's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

// Concurrent calls: the server decodes the images of one call while the model runs those of another.
inline constexpr size_t kImageCallsInFlight = 4;

// Some of the files, in order.
struct ImageBatch {
  std::vector<std::string> names;
  // One result per name. It has an error if the image was left out of `request`: unreadable or too large.
  std::vector<v1::ImageResult> results;
  // The other images.
  v1::ClassifyImageRequest request;
};

// Stores the results of the images that were sent. Errors: INTERNAL if their number differs.
absl::Status PlaceResults(const v1::ClassifyImageResponse& response, ImageBatch& batch);

// The server names an image by its index in the call. Removes it from the message: the output shows the file's name.
void RemoveImageIndex(int index, v1::ItemError& error);

// Reads files lazily, so that only a few batches are in memory.
class ImageBatches final {
 public:
  struct Options {
    // Images in a batch: enough to fill the model's batches, few enough to show progress.
    int32_t images = 8;
    // Maximum bytes of a batch with several images.
    int64_t bytes = int64_t{4} << 20;
  };

  // `limits`: from GetModel; they cap `options`. `request`: the fields of every call, without images.
  ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options,
               v1::ClassifyImageRequest request, Terminal& terminal);

  bool AtEnd() const { return next_ == names_.size(); }
  // REQUIRES: not AtEnd().
  ImageBatch Next();

 private:
  // Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if it exceeds the server's limit.
  absl::StatusOr<std::string> Read(const std::string& name) const;

  const std::vector<std::string> names_;
  const int64_t image_bytes_limit_;
  const int32_t images_per_batch_;
  const int64_t bytes_per_batch_;
  const v1::ClassifyImageRequest request_;
  Terminal& terminal_;
  size_t next_ = 0;
  // The content of the file at next_, if it was read but did not fit in the previous batch.
  std::optional<absl::StatusOr<std::string>> waiting_;
};

}  // namespace longshort::client
