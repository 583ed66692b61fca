#include "models/images/opencv_decoder.h"

#include <cstdint>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/images/quiet_standard_error.h"
#include "opencv2/core.hpp"
#include "opencv2/core/utils/logger.hpp"
#include "opencv2/imgcodecs.hpp"

namespace longshort {
namespace {

int IgnoreError(int, const char*, const char*, const char*, int, void*) { return 0; }

// Once in a process: OpenCV works in the thread that calls it, and its errors are told by status alone.
void PrepareOpenCv() {
  static const bool prepared = [] {
    cv::setNumThreads(1);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    cv::redirectError(IgnoreError);
    return true;
  }();
  static_cast<void>(prepared);
}

absl::Status NoMemory(const ImageSize& size) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("there is no memory to decode an image of %d x %d pixels", size.width, size.height));
}

cv::Mat Decode(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  // OpenCV takes no const bytes, and does not write to them.
  const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8U, const_cast<uint8_t*>(data));
  return cv::imdecode(encoded, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeWithOpenCv(std::string_view bytes, const ImageSize& size) {
  cv::Mat image;
  try {
    PrepareOpenCv();
    const QuietStandardError quiet;
    image = Decode(bytes);
  } catch (const std::bad_alloc&) {
    return NoMemory(size);
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return NoMemory(size);
    return absl::InvalidArgumentError(absl::StrCat("the image cannot be decoded: ", error.err));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the image cannot be decoded: ", error.what()));
  }
  if (image.empty()) return absl::InvalidArgumentError("the image cannot be decoded: its data are broken");
  if (image.type() != CV_8UC3 || image.rows != size.height || image.cols != size.width || !image.isContinuous()) {
    return absl::InvalidArgumentError("the image is broken: its data are not what its header says");
  }
  return image;
}

}  // namespace longshort
