// TIFF: which files are decoded, and their form that libtiff decodes as Pillow would.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"

namespace longshort {

// Of the first page.
struct TiffHeader {
  ImageSize size;
  int orientation = 1;            // as EXIF's
  int bits_per_sample = 1;        // 1, 8 or 16
  int samples = 1;                // of a pixel
  bool white_is_zero = false;     // grey values count from white
  bool associated_alpha = false;  // RGBA whose colours are multiplied with alpha
};

// Decoded are pages of 1, 8 or 16 bits a sample, unsigned: grey, RGB, palette, CMYK or YCbCr, with or without alpha, in
// strips or tiles; not compressed, or as CCITT, LZW, JPEG, Deflate, PackBits, LZMA or Zstandard do. 16 bits: grey, RGB
// and RGBA, channels of a pixel side by side. Errors: INVALID_ARGUMENT for all others, naming the tag and its value.
absl::StatusOr<TiffHeader> ReadTiffHeader(std::string_view bytes);

// The file with its first page made plain, so that its samples are decoded as they are stored: the orientation is 1,
// alpha is not to be multiplied in, strips are no longer than the page.
// Errors: those of ReadTiffHeader, and INVALID_ARGUMENT for strips or tiles that share bytes so that a small file would
// be read without end.
absl::StatusOr<std::string> MakePlainTiff(std::string_view bytes);

}  // namespace longshort
