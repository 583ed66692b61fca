#include "models/images/decode_image.h"

#include <utility>

#include "base/status_macros.h"
#include "models/images/codecs.h"
#include "models/images/opencv_border.h"
#include "opencv2/imgproc.hpp"

namespace longshort::models {
namespace {

// Converts pixels to RGB of 8 bits. Returns such pixels unchanged.
cv::Mat ToRgb(cv::Mat pixels) {
  if (pixels.depth() == CV_16U) {
    cv::Mat narrow;
    pixels.convertTo(narrow, CV_8U, 1.0 / 257);
    pixels = std::move(narrow);
  }
  if (pixels.channels() == 3) return pixels;
  cv::Mat rgb;
  if (pixels.channels() == 4) {
    cv::cvtColor(pixels, rgb, cv::COLOR_RGBA2RGB);
    return rgb;
  }
  if (pixels.channels() == 2) cv::extractChannel(pixels, pixels, 0);
  cv::cvtColor(pixels, rgb, cv::COLOR_GRAY2RGB);
  return rgb;
}

// A decoded JPEG, PNG or WebP.
template <typename Decoded>
absl::StatusOr<cv::Mat> RgbOf(absl::StatusOr<Decoded> decoded, const DecodeOptions& options) {
  if (!decoded.ok()) return decoded.status();
  const cv::Mat rgb = ToRgb(std::move(decoded->pixels));
  return options.orientation == OrientationUse::kApply ? Upright(rgb, OrientationOf(decoded->metadata)) : rgb;
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageHeader& header, const DecodeOptions& options) {
  return CallOpenCv([&]() -> absl::StatusOr<cv::Mat> {
    switch (header.format) {
      case ImageFormat::kJpeg:
        return RgbOf(DecodeJpeg(bytes, header), options);
      case ImageFormat::kPng:
        return RgbOf(DecodePng(bytes, header), options);
      case ImageFormat::kWebp:
        return RgbOf(DecodeWebp(bytes, header), options);
    }
    return absl::InternalError("an image format without a decoder");
  });
}

absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits, const DecodeOptions& options) {
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, limits));
  return DecodeImage(bytes, header, options);
}

}  // namespace longshort::models
