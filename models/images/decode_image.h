// Decodes images, with the results of Pillow's Image.open, ImageOps.exif_transpose and convert("RGB").
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/images/image_header.h"
#include "models/weights/image_preprocessing_config.h"
#include "opencv2/core.hpp"
#include "opencv2/core/mat.hpp"
#include "opencv2/core/utility.hpp"

namespace longshort::models {

struct DecodeOptions {
  OrientationUse orientation = OrientationUse::kApply;
  // An image of many pixels may be decoded to a fraction of its sides that is at least this large on both; nullopt: no
  // image is.
  std::optional<ImageSize> enough = std::nullopt;
};

struct DecodedImage {
  cv::Mat pixels;       // RGB of 8 bits
  ImageSize full_size;  // of the image as it is turned, before scaling
};

// Decodes the first frame to upright RGB of 8 bits, or as stored if the orientation is to be ignored. Converts grey to
// RGB, ignores alpha (no blending), and divides samples of 16 bits by 257, with rounding. The four channels of a CMYK
// JPEG are inverted, as Adobe stores them. Profiles and gamma are ignored. JPEG, and WebP without animation, are
// decoded to a half, a quarter or an eighth if DecodeOptions allow it; this saves time, and averages pixels. REQUIRES:
// `header` is ReadImageHeader(bytes, ...).
//
// Thread-safe. Errors: INVALID_ARGUMENT for images that are broken, truncated or not supported, and for samples of 16
// bits that are all at most 4095 (and not all 0): data of 12 bits, which would be nearly black. RESOURCE_EXHAUSTED if
// memory is exhausted.
absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const ImageHeader& header,
                                         const DecodeOptions& options);

// Images below this number of pixels are never scaled: it would save little.
inline constexpr int64_t kMinScaledPixels = 4'000'000;

// Reads the header, then decodes without scaling. Errors: also those of ReadImageHeader.
absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits,
                                    OrientationUse orientation = OrientationUse::kApply);

// Calls OpenCV without threads, and converts its exceptions to statuses. Returns the result of `work`, a Status or a
// StatusOr. Errors: RESOURCE_EXHAUSTED if memory is exhausted, INTERNAL for any other exception.
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
