#include "clients/cpp/image_batches.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/failures.h"

namespace longshort::client {
namespace {

absl::Status TooLarge(int64_t bytes, int64_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file has ", bytes, " bytes; the server accepts at most ", limit, " for an image"));
}

}  // namespace

absl::Status PlaceResults(const v1::ClassifyImageResponse& response, ImageBatch& batch) {
  if (response.results_size() != batch.request.images_size()) {
    return absl::InternalError(absl::StrCat("the server answered ", batch.request.images_size(), " images with ",
                                            response.results_size(), " results"));
  }
  int next = 0;
  for (v1::ImageResult& result : batch.results) {
    if (result.has_error()) continue;
    result = response.results(next);
    if (result.has_error()) RemoveImageIndex(next, *result.mutable_error());
    ++next;
  }
  return absl::OkStatus();
}

void RemoveImageIndex(int index, v1::ItemError& error) {
  absl::string_view message = error.message();
  if (absl::ConsumePrefix(&message, absl::StrCat("images[", index, "]: "))) error.set_message(std::string(message));
}

ImageBatches::ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options,
                           v1::ClassifyImageRequest request, Terminal& terminal)
    : names_(std::move(names)),
      image_bytes_limit_(limits.image_bytes()),
      images_per_batch_(std::clamp(limits.images(), 1, options.images)),
      bytes_per_batch_(std::min(image_bytes_limit_, options.bytes)),
      request_(std::move(request)),
      terminal_(terminal) {}

ImageBatch ImageBatches::Next() {
  ImageBatch batch;
  batch.request = request_;
  int64_t bytes = 0;
  for (; !AtEnd() && static_cast<int32_t>(batch.names.size()) < images_per_batch_; ++next_) {
    absl::StatusOr<std::string> image = waiting_.has_value() ? *std::move(waiting_) : Read(names_[next_]);
    waiting_.reset();
    v1::ImageResult result;
    if (image.ok()) {
      bytes += static_cast<int64_t>(image->size());
      if (batch.request.images_size() > 0 && bytes > bytes_per_batch_) {
        waiting_ = std::move(image);
        break;
      }
      batch.request.add_images()->set_encoded(*std::move(image));
    } else {
      *result.mutable_error() = MakeItemError(image.status());
    }
    batch.names.push_back(names_[next_]);
    batch.results.push_back(result);
  }
  return batch;
}

absl::StatusOr<std::string> ImageBatches::Read(const std::string& name) const {
  std::error_code no_regular_file;  // then the check after reading applies
  const auto size = static_cast<int64_t>(std::filesystem::file_size(name, no_regular_file));
  if (!no_regular_file && size > image_bytes_limit_) return TooLarge(size, image_bytes_limit_);
  absl::StatusOr<std::string> bytes = ReadDocument(name, terminal_);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > image_bytes_limit_) {
    return TooLarge(static_cast<int64_t>(bytes->size()), image_bytes_limit_);
  }
  return bytes;
}

}  // namespace longshort::client
