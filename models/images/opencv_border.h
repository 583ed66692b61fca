// The border to OpenCV: no exception passes it, and OpenCV starts no threads.
#pragma once

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "opencv2/core.hpp"
#include "opencv2/core/utility.hpp"

namespace longshort::models {

// Returns what `work` returns: a status or a StatusOr.
// Errors: RESOURCE_EXHAUSTED if there was no memory, INTERNAL for any other exception.
template <typename Work>
auto CallOpenCv(const Work& work) -> decltype(work()) {
  // One image is one thread's work; preparation threads and the trainer run several at once.
  [[maybe_unused]] static const bool sequential = [] {
    cv::setNumThreads(0);
    return true;
  }();
  try {
    return work();
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return absl::ResourceExhaustedError("there is no memory for the image");
    return absl::InternalError(absl::StrCat("OpenCV: ", error.err));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is no memory for the image");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace longshort::models
