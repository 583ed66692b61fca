#include "models/images/decode_image.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "models/images/bmp.h"
#include "models/images/bmp_decoder.h"
#include "models/images/image_header.h"
#include "models/images/jpeg.h"
#include "models/images/jpeg_decoder.h"
#include "models/images/orientation.h"
#include "models/images/png.h"
#include "models/images/png_decoder.h"
#include "models/images/stored_pixels.h"
#include "models/images/tiff.h"
#include "models/images/tiff_decoder.h"
#include "models/images/webp.h"
#include "models/images/webp_decoder.h"

namespace longshort {
namespace {

// 8 bits of a sample; of 16 bits the nearest of 256 levels.
uint8_t To8Bits(uint8_t sample) { return sample; }
uint8_t To8Bits(uint16_t sample) { return static_cast<uint8_t>((sample + 128) / 257); }

// A colour that was multiplied with alpha, without it.
uint8_t Divided(uint8_t colour, uint8_t alpha) {
  return alpha == 0 ? 0 : static_cast<uint8_t>(std::min(255 * colour / alpha, 255));
}

// Which of a stored pixel's channels are red, green and blue, and which, if any, is an alpha to divide them by.
struct Channels {
  std::array<int, 3> rgb = {0, 1, 2};
  int alpha = -1;
};

// Stored pixels to red, green, blue upright.
template <typename Sample>
RgbImage UprightRgb(const StoredPixels& stored, const Channels& channels, int orientation) {
  const UprightWalk walk = WalkUpright(stored.size, orientation);
  RgbImage image{walk.size, std::vector<uint8_t>(static_cast<size_t>(walk.size.height * walk.size.width * 3))};
  const auto* pixels = reinterpret_cast<const Sample*>(stored.bytes.data());
  const int stride = stored.channels;
  uint8_t* out = image.values.data();
  for (int64_t y = 0; y < walk.size.height; ++y) {
    int64_t at = walk.first + y * walk.down;
    for (int64_t x = 0; x < walk.size.width; ++x, at += walk.right, out += 3) {
      const Sample* pixel = pixels + stride * at;
      for (int c = 0; c < 3; ++c) out[c] = To8Bits(pixel[channels.rgb[c]]);
      if (channels.alpha < 0) continue;
      for (int c = 0; c < 3; ++c) out[c] = Divided(out[c], To8Bits(pixel[channels.alpha]));
    }
  }
  return image;
}

RgbImage UprightRgb(const StoredPixels& stored, const Channels& channels, int orientation) {
  return stored.sample_bytes == 2 ? UprightRgb<uint16_t>(stored, channels, orientation)
                                  : UprightRgb<uint8_t>(stored, channels, orientation);
}

absl::StatusOr<RgbImage> DecodeJpeg(std::string_view bytes, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(const PlainJpeg plain, MakePlainJpeg(bytes));
  LS_ASSIGN_OR_RETURN(const StoredPixels stored, DecodeJpegPixels(plain.file, size));
  return UprightRgb(stored, {}, plain.orientation);
}

absl::StatusOr<RgbImage> DecodePng(std::string_view bytes, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(PlainPng plain, MakePlainPng(bytes));
  LS_ASSIGN_OR_RETURN(const StoredPixels stored, DecodePngPixels(plain.file, size));
  return UprightRgb(stored, {}, plain.orientation);
}

// The first frame on a black canvas.
absl::StatusOr<StoredPixels> DecodeWebpFrame(const WebpFrame& frame, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(StoredPixels pixels, DecodeWebpPixels(frame.file, frame.size));
  StoredPixels canvas(size, pixels.channels);
  for (int64_t row = 0; row < frame.size.height; ++row) {
    std::copy_n(pixels.Row(row), pixels.RowBytes(), canvas.Row(frame.top + row) + frame.left * canvas.channels);
  }
  return canvas;
}

absl::StatusOr<RgbImage> DecodeWebp(std::string_view bytes, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(const std::optional<WebpFrame> frame, FirstWebpFrame(bytes));
  LS_ASSIGN_OR_RETURN(const StoredPixels stored,
                      frame.has_value() ? DecodeWebpFrame(*frame, size) : DecodeWebpPixels(bytes, size));
  return UprightRgb(stored, {}, WebpOrientation(bytes));
}

absl::StatusOr<RgbImage> DecodeBmpFile(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const BmpHeader header, ReadBmpHeader(bytes));
  return DecodeBmp(bytes, header);
}

absl::StatusOr<RgbImage> DecodeTiff(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const TiffHeader header, ReadTiffHeader(bytes));
  LS_ASSIGN_OR_RETURN(const std::string plain, MakePlainTiff(bytes));
  LS_ASSIGN_OR_RETURN(const StoredPixels stored, DecodeTiffSamples(plain, header));
  Channels channels = {.alpha = header.associated_alpha ? 3 : -1};
  if (stored.channels == 1) channels.rgb = {0, 0, 0};
  RgbImage image = UprightRgb(stored, channels, header.orientation);
  if (header.white_is_zero && header.bits_per_sample == 16) {
    for (uint8_t& value : image.values) value = static_cast<uint8_t>(255 - value);
  }
  return image;
}

absl::StatusOr<RgbImage> Decode(const ImageHeader& header, std::string_view bytes) {
  switch (header.format) {
    case ImageFormat::kJpeg:
      return DecodeJpeg(bytes, header.size);
    case ImageFormat::kPng:
      return DecodePng(bytes, header.size);
    case ImageFormat::kWebp:
      return DecodeWebp(bytes, header.size);
    case ImageFormat::kBmp:
      return DecodeBmpFile(bytes);
    case ImageFormat::kTiff:
      return DecodeTiff(bytes);
  }
  return absl::InternalError("an image format without a decoder");
}

}  // namespace

absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, const ImageLimits& limits) {
  LS_RETURN_IF_ERROR(CheckBytes(static_cast<int64_t>(bytes.size()), limits));
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes));
  LS_RETURN_IF_ERROR(CheckSize(header.size, limits));
  try {
    return Decode(header, bytes);
  } catch (const std::exception&) {
    // The libraries throw nothing: this is memory for the pixels.
    return absl::ResourceExhaustedError("there is no memory to decode the image");
  }
}

}  // namespace longshort
