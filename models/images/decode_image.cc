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
absl::StatusOr<cv::Mat> UprightRgb(absl::StatusOr<Decoded> decoded) {
  if (!decoded.ok()) return decoded.status();
  return Upright(ToRgb(std::move(decoded->pixels)), decoded->orientation);
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageHeader& header) {
  return CallOpenCv([&]() -> absl::StatusOr<cv::Mat> {
    switch (header.format) {
      case ImageFormat::kJpeg:
        return UprightRgb(DecodeJpeg(bytes, header));
      case ImageFormat::kPng:
        return UprightRgb(DecodePng(bytes, header));
      case ImageFormat::kWebp:
        return UprightRgb(DecodeWebp(bytes, header));
    }
    return absl::InternalError("an image format without a decoder");
  });
}

absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits) {
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, limits));
  return DecodeImage(bytes, header);
}

}  // namespace longshort::models
