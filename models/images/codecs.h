// The formats of encoded images: their headers, pixels and orientation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/byte_order.h"
#include "base/status_macros.h"
#include "models/classifier.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

// Reads unsigned numbers at any offset in `bytes`, the bytes of an untrusted image file, which must outlive the reader.
// Errors: INVALID_ARGUMENT if the bytes end too early.
class ByteReader final {
 public:
  ByteReader(std::string_view bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  std::string_view bytes() const { return bytes_; }

  // Reads the number in the `length` bytes (1 to 8) at `offset`.
  absl::StatusOr<uint64_t> Number(uint64_t offset, int length) const {
    LS_ASSIGN_OR_RETURN(const std::string_view slice, Slice(offset, static_cast<uint64_t>(length)));
    return ReadNumber(slice, order_);
  }

  // The `length` bytes at `offset`.
  absl::StatusOr<std::string_view> Slice(uint64_t offset, uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the image is truncated: it has %d bytes, but %d more should follow byte %d", bytes_.size(), length, offset));
    }
    return bytes_.substr(offset, length);
  }

 private:
  std::string_view bytes_;
  ByteOrder order_;
};

// What a file says about its orientation.
struct ImageMetadata {
  std::string exif;  // a TIFF file without image, after up to two prefixes "Exif\0\0"; may be empty or broken
  std::string xmp;   // XML; may be empty or broken
};

// The pixels of a file as stored.
struct StoredImage {
  cv::Mat pixels;  // 8 or 16 bits: grey or red, green, blue, and alpha if a PNG has it
  ImageMetadata metadata;
};

// JPEG: the segments of a file are checked first, so that only complete images of a known size are decoded. libjpeg
// decodes the pixels.

// Maximum number of scans of an image. Encoders write about ten. Each costs a pass over all pixels, however short its
// data are. So the scans of a large image may have at most kMaxScannedPixels pixels together, but
// kMaxScansOfLargeJpeg scans are always allowed.
inline constexpr int kMaxJpegScans = 100, kMaxScansOfLargeJpeg = 20;
inline constexpr int64_t kMaxScannedPixels = int64_t{1} << 30;

// Reads the file up to its frame header.
// Errors: INVALID_ARGUMENT if there is none, or if it is not supported. Supported are 8 bits per sample, and baseline,
// extended or progressive frames.
absl::StatusOr<ImageHeader> ReadJpegHeader(std::string_view bytes);

// Follows all segments to the end of the image, then decodes. Converts CMYK to RGB as Pillow does. Each side has
// 1 / divisor of the pixels, rounded up. `divisor` is 1, 2, 4 or 8.
// REQUIRES: `header` is ReadJpegHeader(bytes), and its size is within the limits.
// Errors: INVALID_ARGUMENT if a segment or the end is missing, for a second frame or too many scans, and if decoding
// fails; RESOURCE_EXHAUSTED if libjpeg cannot allocate memory. Throws cv::Exception if the pixels cannot be allocated.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const ImageHeader& header, int divisor);

// PNG: libpng's progressive reader decodes the pixels. It inflates no data after the last row.

// Errors: INVALID_ARGUMENT if the first chunk is not a complete IHDR.
absl::StatusOr<ImageHeader> ReadPngHeader(std::string_view bytes);

// Passes only the chunks to libpng that the pixels need: IHDR, PLTE, tRNS, IDAT, IEND. Converts palettes to colours.
// REQUIRES: `header` is ReadPngHeader(bytes), and its size is within the limits.
// Errors: INVALID_ARGUMENT if the file ends before the end of the chunk IEND, if the data are broken or end before the
// last row; RESOURCE_EXHAUSTED if memory is exhausted.
absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const ImageHeader& header);

// WebP: the file is a RIFF container of chunks. libwebp decodes the pixels.

// The size is that of the canvas. Errors: INVALID_ARGUMENT if the first chunk is not a valid VP8, VP8L or VP8X.
absl::StatusOr<ImageHeader> ReadWebpHeader(std::string_view bytes);

// A frame of an animation, as a separate WebP file, and its position on the canvas.
struct WebpFrame {
  std::string file;  // ReadWebpHeader(file)->size == size
  ImageSize size;
  int64_t top = 0;
  int64_t left = 0;
};

// The first frame, or nullopt if the image is not animated. `canvas` is the header's size.
// Errors: INVALID_ARGUMENT if there is no frame, or if the first one is broken, exceeds the canvas or contains an image
// of another size.
absl::StatusOr<std::optional<WebpFrame>> FirstWebpFrame(std::string_view bytes, const ImageSize& canvas);

// Ignores alpha. For an animation, decodes the first frame on a black canvas, without dividing. Otherwise `divisor` is
// as in DecodeJpeg.
// REQUIRES: `header` is ReadWebpHeader(bytes), and its size is within the limits.
// Errors: those of FirstWebpFrame; INVALID_ARGUMENT if decoding fails; RESOURCE_EXHAUSTED if libwebp cannot allocate
// memory. Throws cv::Exception if the pixels cannot be allocated.
absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const ImageHeader& header, int divisor);

// The size of a side of that many pixels after division, rounded up.
inline int64_t DividedSide(int64_t pixels, int divisor) { return (pixels + divisor - 1) / divisor; }

// The orientation: the turn that makes the stored pixels upright.

// The orientation, 1 to 8, that Pillow 13 finds: EXIF's tag "Orientation", or XMP's if EXIF has none. EXIF's may be a
// number of any type; the first of several counts. Returns 1, upright as stored, if there is none or if it is not 1 to
// 8, and for data that Pillow refuses, because broken metadata is no reason to reject an image.
int OrientationOf(const ImageMetadata& metadata);

// Returns the upright image, which is `stored` itself if no change is needed. `orientation` is 1 to 8:
//   1 upright          2 mirrored left to right     3 turned by 180°   4 mirrored top to bottom
//   5 transposed       6 to be turned clockwise     7 transposed along the other diagonal
//   8 to be turned counter-clockwise
cv::Mat Upright(const cv::Mat& stored, int orientation);

}  // namespace longshort::models
