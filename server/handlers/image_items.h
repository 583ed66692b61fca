// Runs the images of a unary call through a classifier: each is an engine request.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/classifier_engine.h"
#include "models/classifier.h"
#include "server/call/call_record.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// One result for each image, in request order. An error concerns its image only.
using ImageResults = std::vector<absl::StatusOr<core::ItemResult>>;

// What `convert` makes of each result. Errors stay as they are.
template <typename Convert>
auto ConvertEach(ImageResults images, Convert convert) {
  std::vector<absl::StatusOr<std::invoke_result_t<Convert, core::ItemResult>>> converted;
  converted.reserve(images.size());
  for (absl::StatusOr<core::ItemResult>& image : images) {
    if (image.ok()) {
      converted.emplace_back(convert(*std::move(image)));
    } else {
      converted.emplace_back(image.status());
    }
  }
  return converted;
}

// Errors: FAILED_PRECONDITION if the model takes no images; INVALID_ARGUMENT if their number is out of range.
absl::Status CheckImages(const CallRecord& record, const core::ServedClassifier& model, size_t count);

// Computes `output` of each image. `done` holds `record`. It is called once, at once or later, on any thread.
// REQUIRES: CheckImages succeeded.
void RunImages(CallRecord& record, std::shared_ptr<const core::ServedClassifier> model, std::vector<ImageInput> images,
               models::ClassifierOutput output, std::function<void(absl::StatusOr<ImageResults>)> done);

}  // namespace longshort::server
