// The images of a call as requests to the engine.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/requests/classification_request.h"
#include "models/classifier.h"
#include "server/calls/call_names.h"
#include "server/calls/image_input.h"

namespace longshort {

// Image `index` of a call, to be decoded by the engine's preparation, which keeps it until then, and whose errors name
// it. A few pixels that need no decoding are an item at once: waking a thread would take longer.
// `work_before` is work_until_prepared of the call's image before. Errors: INVALID_ARGUMENT naming it, for an image
// without bytes and without pixels.
absl::StatusOr<ClassificationRequest> ReadImage(ImageInput image, int64_t index, const CallNames& names,
                                                std::shared_ptr<const ImagePreprocessor> preprocessor,
                                                const RequestContext& context, absl::Duration work_before);

}  // namespace longshort
