#include "models/images/decode_image.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/codecs.h"
#include "opencv2/imgproc.hpp"

namespace longshort::models {
namespace {

// Data of 12 bits or fewer that a program stored in 16 bits without scaling them would become nearly black.
absl::Status CheckUsesSixteenBits(const cv::Mat& pixels) {
  constexpr int kMaxOfTwelveBits = 4095;
  const int channels = pixels.channels(), colours = channels % 2 == 0 ? channels - 1 : channels;  // the last is alpha
  int max = 0;
  for (int y = 0; y < pixels.rows; ++y) {
    const auto* row = pixels.ptr<uint16_t>(y);
    for (int x = 0; x < pixels.cols; ++x, row += channels)
      max = std::max<int>(max, *std::max_element(row, row + colours));
    if (max > kMaxOfTwelveBits) return absl::OkStatus();
  }
  if (max == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the image has 16 bits per sample, but its largest sample is %d of 65535: data of fewer bits, which would be "
      "nearly "
      "black. Scale them to the whole range; if the image is meant to be that dark, convert it to 8 bits",
      max));
}

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

// What the sides of an image are divided by when it is decoded: 1, 2, 4 or 8.
int ScaleOf(const ImageSize& size, const DecodeOptions& options) {
  if (!options.enough.has_value() || size.pixels() < kMinScaledPixels) return 1;
  int divisor = 8;
  while (divisor > 1 &&
         (size.height / divisor < options.enough->height || size.width / divisor < options.enough->width)) {
    divisor /= 2;
  }
  return divisor;
}

absl::StatusOr<StoredImage> DecodeStored(std::string_view bytes, const ImageHeader& header, int divisor) {
  switch (header.format) {
    case ImageFormat::kJpeg:
      return DecodeJpeg(bytes, header, divisor);
    case ImageFormat::kPng:
      return DecodePng(bytes, header);
    case ImageFormat::kWebp:
      return DecodeWebp(bytes, header, divisor);
  }
  return absl::InternalError("an image format without a decoder");
}

}  // namespace

absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const ImageHeader& header,
                                         const DecodeOptions& options) {
  return CallOpenCv([&]() -> absl::StatusOr<DecodedImage> {
    LS_ASSIGN_OR_RETURN(StoredImage stored, DecodeStored(bytes, header, ScaleOf(header.size, options)));
    if (stored.pixels.depth() == CV_16U) LS_RETURN_IF_ERROR(CheckUsesSixteenBits(stored.pixels));
    const cv::Mat rgb = ToRgb(std::move(stored.pixels));
    const int orientation = options.orientation == OrientationUse::kApply ? OrientationOf(stored.metadata) : 1;
    const bool transposed = orientation >= 5;
    return DecodedImage{Upright(rgb, orientation),
                        transposed ? ImageSize{header.size.width, header.size.height} : header.size};
  });
}

absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits, OrientationUse orientation) {
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, limits));
  LS_ASSIGN_OR_RETURN(DecodedImage image, DecodeImage(bytes, header, {.orientation = orientation}));
  return std::move(image.pixels);
}

}  // namespace longshort::models
