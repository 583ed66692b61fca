// The images of a ClassifyImageRequest as requests to the engine.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/requests/classification_request.h"
#include "longshort/v1/inference.pb.h"
#include "models/classifier.h"

namespace longshort {

// Image `index` of a request, to be decoded by the engine's preparation, which keeps it until then, and whose errors
// name the index. A few pixels that need no decoding are an item at once: waking a thread would take longer.
// `work_before` is work_until_prepared of the call's image before. Errors: INVALID_ARGUMENT naming the index, for an
// image without bytes and without pixels.
absl::StatusOr<ClassificationRequest> ReadImage(v1::Image image, int index,
                                                std::shared_ptr<const ImagePreprocessor> preprocessor,
                                                const RequestContext& context, absl::Duration work_before);

}  // namespace longshort
