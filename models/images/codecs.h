// The formats of encoded images: their headers, their pixels, and how these are turned to stand upright.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

// The pixels of a file as they are stored.
struct StoredImage {
  cv::Mat pixels;       // 8 or 16 bits: grey or red, green, blue, and alpha if a PNG has it
  int orientation = 1;  // of EXIF
};

// JPEG: the segments of a file, read so that only what is whole and of a known size is decoded, and its pixels by
// libjpeg.

// Scans of one image. Encoders write about ten; each costs a pass over all pixels, however short its data are. So a
// large image may have fewer: as many as all have no more than kMaxScannedPixels, but always kMaxScansOfLargeJpeg.
inline constexpr int kMaxJpegScans = 100, kMaxScansOfLargeJpeg = 20;
inline constexpr int64_t kMaxScannedPixels = int64_t{1} << 30;

// Reads as far as the frame header.
// Errors: INVALID_ARGUMENT if there is none, or one that is not decoded: 8 bits a sample, baseline, extended or
// progressive.
absl::StatusOr<ImageHeader> ReadJpegHeader(std::string_view bytes);

// Follows all segments to the end of the image, then decodes. Four inks become colours as Pillow makes them.
// REQUIRES: `header`, whose size is within limits, is ReadJpegHeader(bytes).
// Errors: INVALID_ARGUMENT if a segment or the end is missing, for a second frame, for too many scans, and if it cannot
// be decoded; RESOURCE_EXHAUSTED if libjpeg finds no memory. Throws cv::Exception if there is none for the pixels.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const ImageHeader& header);

// PNG: the chunks of a file, and its pixels by libpng's progressive reader, which inflates no further than the last
// row, however much data follow.

// Errors: INVALID_ARGUMENT if the first chunk is not a whole IHDR.
absl::StatusOr<ImageHeader> ReadPngHeader(std::string_view bytes);

// libpng gets only the chunks that the pixels need: IHDR, PLTE, tRNS, IDAT, IEND. Palettes become colours.
// REQUIRES: `header`, whose size is within limits, is ReadPngHeader(bytes).
// Errors: INVALID_ARGUMENT if the file ends before the chunk IEND does, if the data are broken or end before the last
// row; RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const ImageHeader& header);

// WebP: the chunks of its RIFF container, and its pixels by libwebp.

// The size is that of the canvas. Errors: INVALID_ARGUMENT if the first chunk is none of VP8, VP8L and VP8X, or broken.
absl::StatusOr<ImageHeader> ReadWebpHeader(std::string_view bytes);

// A frame of an animation: a WebP file of its own, and where on the canvas it stands.
struct WebpFrame {
  std::string file;  // ReadWebpHeader(file)->size == size
  ImageSize size;
  int64_t top = 0;
  int64_t left = 0;
};

// The first frame, or nothing if the image is not animated. `canvas` is the header's size.
// Errors: INVALID_ARGUMENT if there is no frame, or one that is broken, reaches over the canvas or holds
// an image of another size.
absl::StatusOr<std::optional<WebpFrame>> FirstWebpFrame(std::string_view bytes, const ImageSize& canvas);

// Alpha is dropped; of an animation the first frame is decoded, on a black canvas.
// REQUIRES: `header`, whose size is within limits, is ReadWebpHeader(bytes).
// Errors: as FirstWebpFrame, and INVALID_ARGUMENT if it cannot be decoded; RESOURCE_EXHAUSTED if libwebp finds no
// memory. Throws cv::Exception if there is none for the pixels.
absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const ImageHeader& header);

// EXIF's orientation: how stored pixels are turned to stand upright.

// The tag "Orientation" of EXIF data (a TIFF directory inside an image), 1 to 8; 1, upright as stored, if there is none
// or the bytes cannot be read: a broken note on an image is no reason to refuse it.
int ExifOrientation(std::string_view exif);

// The image upright; the image itself if it stands so already. `orientation` 1 to 8:
//   1 upright          2 mirrored left to right     3 turned by 180°   4 mirrored top to bottom
//   5 transposed       6 to be turned clockwise     7 transposed along the other diagonal
//   8 to be turned counter-clockwise
cv::Mat Upright(const cv::Mat& stored, int orientation);

}  // namespace longshort::models
