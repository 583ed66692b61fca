#include "models/images/image_header.h"

#include <array>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/bmp.h"
#include "models/images/jpeg.h"
#include "models/images/png.h"
#include "models/images/tiff.h"
#include "models/images/webp.h"

namespace longshort {
namespace {

using namespace std::string_view_literals;

struct Magic {
  ImageFormat format;
  std::string_view start;
  std::string_view at_8 = {};  // what byte 8 begins with
};

constexpr std::array<Magic, 8> kMagics = {{
    {ImageFormat::kJpeg, "\xFF\xD8\xFF"sv},
    {ImageFormat::kPng, "\x89PNG\r\n\x1A\n"sv},
    {ImageFormat::kWebp, "RIFF"sv, "WEBP"sv},
    {ImageFormat::kBmp, "BM"sv},
    {ImageFormat::kTiff, "II*\0"sv},
    {ImageFormat::kTiff, "MM\0*"sv},
    {ImageFormat::kTiff, "II+\0"sv},
    {ImageFormat::kTiff, "MM\0+"sv},
}};

std::optional<ImageFormat> FormatOf(std::string_view bytes) {
  for (const Magic& magic : kMagics) {
    if (!bytes.starts_with(magic.start)) continue;
    if (magic.at_8.empty() || (bytes.size() > 8 && bytes.substr(8, magic.at_8.size()) == magic.at_8)) {
      return magic.format;
    }
  }
  return std::nullopt;
}

absl::StatusOr<ImageSize> SizeOf(ImageFormat format, std::string_view bytes) {
  switch (format) {
    case ImageFormat::kJpeg:
      return JpegSize(bytes);
    case ImageFormat::kPng:
      return PngSize(bytes);
    case ImageFormat::kWebp:
      return WebpSize(bytes);
    case ImageFormat::kBmp: {
      LS_ASSIGN_OR_RETURN(const BmpHeader header, ReadBmpHeader(bytes));
      return header.size;
    }
    case ImageFormat::kTiff: {
      LS_ASSIGN_OR_RETURN(const TiffHeader header, ReadTiffHeader(bytes));
      return header.size;
    }
  }
  return absl::InternalError("an image format without a reader");
}

}  // namespace

absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("the image has no bytes");
  const std::optional<ImageFormat> format = FormatOf(bytes);
  if (!format.has_value()) return absl::InvalidArgumentError("the bytes are no JPEG, PNG, WebP, BMP or TIFF image");
  LS_ASSIGN_OR_RETURN(const ImageSize size, SizeOf(*format, bytes));
  return ImageHeader{*format, size};
}

absl::Status CheckBytes(int64_t bytes, const ImageLimits& limits) {
  if (bytes <= limits.max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the image has %d bytes; the limit is %d", bytes, limits.max_bytes));
}

absl::Status CheckSize(const ImageSize& size, const ImageLimits& limits) {
  const auto [height, width] = size;
  if (height < 1 || width < 1) {
    return absl::InvalidArgumentError(absl::StrFormat("the image has no pixels: %d x %d", width, height));
  }
  if (height > limits.max_side || width > limits.max_side) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image is %d x %d pixels; the limit is %d pixels a side", width, height, limits.max_side));
  }
  if (height > limits.max_pixels / width) {
    return absl::InvalidArgumentError(absl::StrFormat("the image is %d x %d = %d pixels; the limit is %d", width,
                                                      height, width * height, limits.max_pixels));
  }
  return absl::OkStatus();
}

}  // namespace longshort
