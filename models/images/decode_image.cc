#include "models/images/decode_image.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "models/images/bmp.h"
#include "models/images/image_header.h"
#include "models/images/jpeg.h"
#include "models/images/opencv_decoder.h"
#include "models/images/orientation.h"
#include "models/images/png.h"
#include "models/images/png_decoder.h"
#include "models/images/tiff.h"
#include "models/images/tiff_decoder.h"
#include "models/images/webp.h"

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
  std::array<int, 3> rgb;
  int alpha = -1;
};
constexpr Channels kBlueGreenRed = {{2, 1, 0}};

// Stored pixels to red, green, blue upright.
template <typename Sample>
RgbImage UprightRgb(const cv::Mat& stored, const Channels& channels, int orientation) {
  const UprightWalk walk = WalkUpright({stored.rows, stored.cols}, orientation);
  RgbImage image{walk.size, std::vector<uint8_t>(static_cast<size_t>(walk.size.height * walk.size.width * 3))};
  const auto* pixels = stored.ptr<Sample>();
  const int stride = stored.channels();
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

RgbImage UprightRgb(const cv::Mat& stored, const Channels& channels, int orientation) {
  return stored.depth() == CV_16U ? UprightRgb<uint16_t>(stored, channels, orientation)
                                  : UprightRgb<uint8_t>(stored, channels, orientation);
}

absl::StatusOr<RgbImage> DecodeUpright(std::string_view bytes, const ImageSize& size, int orientation) {
  LS_ASSIGN_OR_RETURN(const cv::Mat stored, DecodeWithOpenCv(bytes, size));
  return UprightRgb(stored, kBlueGreenRed, orientation);
}

absl::StatusOr<RgbImage> DecodeJpeg(std::string_view bytes, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(const PlainJpeg plain, MakePlainJpeg(bytes));
  return DecodeUpright(plain.file, size, plain.orientation);
}

absl::StatusOr<RgbImage> DecodePng(std::string_view bytes, const ImageSize& size) {
  LS_ASSIGN_OR_RETURN(PlainPng plain, MakePlainPng(bytes));
  LS_ASSIGN_OR_RETURN(const cv::Mat stored, DecodePngPixels(plain.file, size));
  return UprightRgb(stored, kBlueGreenRed, plain.orientation);
}

// The first frame on a black canvas.
absl::StatusOr<RgbImage> DecodeWebp(std::string_view bytes, const ImageSize& size) {
  const int orientation = WebpOrientation(bytes);
  LS_ASSIGN_OR_RETURN(const std::optional<WebpFrame> frame, FirstWebpFrame(bytes));
  if (!frame.has_value()) return DecodeUpright(bytes, size, orientation);
  LS_ASSIGN_OR_RETURN(const cv::Mat pixels, DecodeWithOpenCv(frame->file, frame->size));
  cv::Mat canvas = cv::Mat::zeros(static_cast<int>(size.height), static_cast<int>(size.width), pixels.type());
  pixels.copyTo(
      canvas(cv::Rect(static_cast<int>(frame->left), static_cast<int>(frame->top), pixels.cols, pixels.rows)));
  return UprightRgb(canvas, kBlueGreenRed, orientation);
}

absl::StatusOr<RgbImage> DecodeBmp(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const BmpHeader header, ReadBmpHeader(bytes));
  if (header.masks.has_value()) return DecodeBmpBitFields(bytes, header);
  return DecodeUpright(bytes, header.size, 1);
}

absl::StatusOr<RgbImage> DecodeTiff(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const TiffHeader header, ReadTiffHeader(bytes));
  LS_ASSIGN_OR_RETURN(const std::string plain, MakePlainTiff(bytes));
  LS_ASSIGN_OR_RETURN(const cv::Mat stored, DecodeTiffSamples(plain, header));
  Channels channels = {{0, 1, 2}, header.associated_alpha ? 3 : -1};
  if (stored.channels() == 1) channels.rgb = {0, 0, 0};
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
      return DecodeBmp(bytes);
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
    // What OpenCV throws of its own is caught nearer; what is left is memory for the pixels.
    return absl::ResourceExhaustedError("there is no memory to decode the image");
  }
}

}  // namespace longshort
