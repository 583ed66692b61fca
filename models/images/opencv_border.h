// Calls OpenCV without threads, and converts its exceptions to statuses.
#pragma once

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "opencv2/core.hpp"
#include "opencv2/core/utility.hpp"

namespace longshort::models {

// Returns the result of `work`, a Status or a StatusOr.
// Errors: RESOURCE_EXHAUSTED if memory is exhausted, INTERNAL for any other exception.
template <typename Work>
auto CallOpenCv(const Work& work) -> decltype(work()) {
  // One thread processes an image. Preparation threads and the trainer process several images at once.
  [[maybe_unused]] static const bool sequential = [] {
    cv::setNumThreads(0);
    return true;
  }();
  try {
    return work();
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return absl::ResourceExhaustedError("not enough memory for the image");
    return absl::InternalError(absl::StrCat("OpenCV: ", error.err));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for the image");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace longshort::models
