#include "models/images/tiff.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/tiff_directory.h"

namespace longshort {
namespace {

// CCITT 2 to 4, LZW, JPEG, Deflate by its two numbers, PackBits, LZMA, Zstandard.
constexpr std::array<uint64_t, 11> kCompressions = {1, 2, 3, 4, 5, 7, 8, 32946, 32773, 34925, 50000};
constexpr uint64_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2, kPalette = 3;
// White and black is zero, RGB, palette, CMYK, YCbCr.
constexpr std::array<uint64_t, 6> kPhotometrics = {0, 1, 2, 3, 5, 6};
constexpr uint64_t kSeparatePlanes = 2;
constexpr uint64_t kUnsigned = 1;
constexpr uint64_t kAssociatedAlpha = 1, kUnassociatedAlpha = 2;
// Tiles' sides are multiples of this (TIFF 6.0, section 15); so a small file cannot ask for millions of tiles.
constexpr uint64_t kTileStep = 16;
constexpr uint64_t kMaxTileSide = 65536;
// A larger tile has no more pixels than its image, so a small image cannot ask for much memory.
constexpr uint64_t kSmallTilePixels = uint64_t{1} << 20;
// Strips and tiles may share bytes, as blank ones do. All of them together have no more than this many times the file's
// bytes, and this many more: so a small file cannot ask for endless work.
constexpr uint64_t kMostTimesRead = 4, kMoreBytesRead = uint64_t{64} << 20;

// What the tag is called in TIFF 6.0, and what is taken.
std::string_view WhatIsTaken(TiffTag tag) {
  switch (tag) {
    case TiffTag::kBitsPerSample:
      return "BitsPerSample must be 1, 8 or, of grey or RGB, 16, the same for all samples";
    case TiffTag::kCompression:
      return "Compression must be none, CCITT, LZW, JPEG, Deflate, PackBits, LZMA or Zstandard";
    case TiffTag::kPhotometricInterpretation:
      return "PhotometricInterpretation must be grey, RGB, palette, CMYK or YCbCr";
    case TiffTag::kSamplesPerPixel:
      return "SamplesPerPixel must be 1 to 4";
    case TiffTag::kPlanarConfiguration:
      return "PlanarConfiguration must be 1 with 16 bits a sample";
    case TiffTag::kSampleFormat:
      return "SampleFormat must be 1, unsigned, for all samples";
    case TiffTag::kTileWidth:
      return "TileWidth must be a multiple of 16, 65536 at the most";
    case TiffTag::kTileLength:
      return "TileLength must be a multiple of 16, and a large tile must have no more pixels than the image";
    default:
      return "it is out of range";
  }
}

absl::Status NotDecoded(TiffTag tag, uint64_t value) {
  return absl::InvalidArgumentError(
      absl::StrFormat("a TIFF whose tag %d is %d is not decoded: %s", static_cast<int>(tag), value, WhatIsTaken(tag)));
}

// Rounded up.
uint64_t Quotient(uint64_t dividend, uint64_t divisor) { return (dividend + divisor - 1) / divisor; }

uint64_t InTileSteps(uint64_t length) { return Quotient(length, kTileStep) * kTileStep; }

absl::Status CheckTiles(const TiffDirectory& directory, uint64_t image_width, uint64_t image_height) {
  if (directory.Count(TiffTag::kTileWidth) == 0) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const uint64_t width, directory.Number(TiffTag::kTileWidth));
  LS_ASSIGN_OR_RETURN(const uint64_t height, directory.Number(TiffTag::kTileLength));
  if (width == 0 || width % kTileStep != 0 || width > kMaxTileSide) return NotDecoded(TiffTag::kTileWidth, width);
  const uint64_t most_pixels = std::max(kSmallTilePixels, InTileSteps(image_width) * InTileSteps(image_height));
  if (height == 0 || height % kTileStep != 0 || height > kMaxTileSide || width * height > most_pixels) {
    return NotDecoded(TiffTag::kTileLength, height);
  }
  return absl::OkStatus();
}

// The same value for every sample.
absl::StatusOr<uint64_t> ValueOfAllSamples(const TiffDirectory& directory, TiffTag tag, uint64_t samples,
                                           uint64_t otherwise) {
  LS_ASSIGN_OR_RETURN(const uint64_t first, directory.NumberOr(tag, otherwise));
  for (uint64_t index = 1; index < std::min(samples, directory.Count(tag)); ++index) {
    LS_ASSIGN_OR_RETURN(const uint64_t value, directory.Number(tag, index));
    if (value != first) return NotDecoded(tag, value);
  }
  return first;
}

// Whether samples of 16 bits are laid out so that they can be taken as they are.
absl::Status CheckWideSamples(uint64_t photometric, uint64_t samples, uint64_t planes) {
  const bool grey = photometric == kWhiteIsZero || photometric == kBlackIsZero;
  if (!(grey && samples == 1) && !(photometric == kRgb && (samples == 3 || samples == 4))) {
    return NotDecoded(TiffTag::kBitsPerSample, 16);
  }
  if (samples > 1 && planes == kSeparatePlanes) return NotDecoded(TiffTag::kPlanarConfiguration, planes);
  return absl::OkStatus();
}

// All colours of a palette: libtiff takes the indices for grey where one is missing.
absl::Status CheckPalette(const TiffDirectory& directory, uint64_t bits) {
  const uint64_t expected = uint64_t{3} << bits, count = directory.Count(TiffTag::kColorMap);
  if (count == expected) return directory.Find(TiffTag::kColorMap, count - 1).status();
  return absl::InvalidArgumentError(
      absl::StrFormat("the TIFF image is broken: its palette has %d values; with %d bits a sample it must have %d",
                      count, bits, expected));
}

// How many strips or tiles there are. REQUIRES: HeaderOf(directory) is OK.
absl::StatusOr<uint64_t> CountOfPieces(const TiffDirectory& directory, const ImageSize& size) {
  const auto width = static_cast<uint64_t>(size.width), height = static_cast<uint64_t>(size.height);
  LS_ASSIGN_OR_RETURN(const uint64_t planes, directory.NumberOr(TiffTag::kPlanarConfiguration, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t samples, directory.NumberOr(TiffTag::kSamplesPerPixel, 1));
  const uint64_t copies = planes == kSeparatePlanes ? samples : 1;
  if (directory.Count(TiffTag::kTileWidth) == 0) {
    LS_ASSIGN_OR_RETURN(const uint64_t rows, directory.NumberOr(TiffTag::kRowsPerStrip, height));
    return copies * Quotient(height, std::max<uint64_t>(rows, 1));
  }
  LS_ASSIGN_OR_RETURN(const uint64_t tile_width, directory.Number(TiffTag::kTileWidth));
  LS_ASSIGN_OR_RETURN(const uint64_t tile_height, directory.Number(TiffTag::kTileLength));
  return copies * Quotient(width, tile_width) * Quotient(height, tile_height);
}

// Where a file does not say how long its strips are, libtiff takes each one to go on to the file's end.
absl::Status CheckBytesToRead(const TiffDirectory& directory, const ImageSize& size, uint64_t file_bytes) {
  const TiffTag tag =
      directory.Count(TiffTag::kStripByteCounts) > 0 ? TiffTag::kStripByteCounts : TiffTag::kTileByteCounts;
  LS_ASSIGN_OR_RETURN(const uint64_t pieces, CountOfPieces(directory, size));
  const uint64_t most = kMostTimesRead * file_bytes + kMoreBytesRead;
  uint64_t sum = directory.Count(tag) == 0 ? pieces * file_bytes : 0;
  for (uint64_t index = 0; index < std::min(pieces, directory.Count(tag)) && sum <= most; ++index) {
    LS_ASSIGN_OR_RETURN(const uint64_t bytes, directory.Number(tag, index));
    sum += std::min(bytes, file_bytes);
  }
  if (sum <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the TIFF image is broken: its strips or tiles have more than %d bytes, and the file %d", most, file_bytes));
}

// What the channel behind the colours is; 0 if the file does not say.
uint64_t FirstExtraSample(const TiffDirectory& directory) {
  return directory.NumberOr(TiffTag::kExtraSamples, 0).value_or(0);
}

absl::StatusOr<TiffHeader> HeaderOf(const TiffDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const uint64_t width, directory.Number(TiffTag::kImageWidth));
  LS_ASSIGN_OR_RETURN(const uint64_t height, directory.Number(TiffTag::kImageLength));
  LS_ASSIGN_OR_RETURN(const uint64_t compression, directory.NumberOr(TiffTag::kCompression, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t photometric, directory.Number(TiffTag::kPhotometricInterpretation));
  LS_ASSIGN_OR_RETURN(const uint64_t samples, directory.NumberOr(TiffTag::kSamplesPerPixel, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t planes, directory.NumberOr(TiffTag::kPlanarConfiguration, 1));
  if (samples < 1 || samples > 4) return NotDecoded(TiffTag::kSamplesPerPixel, samples);
  LS_ASSIGN_OR_RETURN(const uint64_t bits, ValueOfAllSamples(directory, TiffTag::kBitsPerSample, samples, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t format, ValueOfAllSamples(directory, TiffTag::kSampleFormat, samples, kUnsigned));
  if (std::max(width, height) > INT32_MAX) return NotDecoded(TiffTag::kImageWidth, std::max(width, height));
  if (std::find(kCompressions.begin(), kCompressions.end(), compression) == kCompressions.end()) {
    return NotDecoded(TiffTag::kCompression, compression);
  }
  if (std::find(kPhotometrics.begin(), kPhotometrics.end(), photometric) == kPhotometrics.end()) {
    return NotDecoded(TiffTag::kPhotometricInterpretation, photometric);
  }
  if (bits != 1 && bits != 8 && bits != 16) return NotDecoded(TiffTag::kBitsPerSample, bits);
  if (format != kUnsigned) return NotDecoded(TiffTag::kSampleFormat, format);
  if (photometric == kPalette) LS_RETURN_IF_ERROR(CheckPalette(directory, bits));
  if (bits == 16) LS_RETURN_IF_ERROR(CheckWideSamples(photometric, samples, planes));
  LS_RETURN_IF_ERROR(CheckTiles(directory, width, height));
  TiffHeader header;
  header.size = {static_cast<int64_t>(height), static_cast<int64_t>(width)};
  header.orientation = OrientationOf(directory);
  header.bits_per_sample = static_cast<int>(bits);
  header.samples = static_cast<int>(samples);
  header.white_is_zero = photometric == kWhiteIsZero;
  header.associated_alpha = photometric == kRgb && samples == 4 && FirstExtraSample(directory) == kAssociatedAlpha;
  return header;
}

// Puts another number in the place of a tag's first one.
absl::Status Replace(const TiffDirectory& directory, TiffTag tag, uint64_t value, std::string& file) {
  LS_ASSIGN_OR_RETURN(const TiffDirectory::Place place, directory.Find(tag));
  WriteNumber(value, directory.order(), place.length, file.data() + place.offset);
  return absl::OkStatus();
}

// Where a number was replaced, another tag's may have stood: what is decoded must be what was let pass.
absl::Status CheckPlain(std::string_view plain, const TiffHeader& before) {
  LS_ASSIGN_OR_RETURN(const TiffDirectory directory, TiffDirectory::Read(plain));
  LS_ASSIGN_OR_RETURN(const TiffHeader header, HeaderOf(directory));
  const auto height = static_cast<uint64_t>(before.size.height);
  LS_ASSIGN_OR_RETURN(const uint64_t rows, directory.NumberOr(TiffTag::kRowsPerStrip, height));
  if (header.size == before.size && header.bits_per_sample == before.bits_per_sample &&
      header.samples == before.samples && header.white_is_zero == before.white_is_zero && header.orientation == 1 &&
      rows <= height) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the TIFF is broken: its tags lie over each other");
}

}  // namespace

absl::StatusOr<TiffHeader> ReadTiffHeader(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const TiffDirectory directory, TiffDirectory::Read(bytes));
  return HeaderOf(directory);
}

absl::StatusOr<std::string> MakePlainTiff(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const TiffDirectory directory, TiffDirectory::Read(bytes));
  LS_ASSIGN_OR_RETURN(const TiffHeader header, HeaderOf(directory));
  LS_RETURN_IF_ERROR(CheckBytesToRead(directory, header.size, bytes.size()));
  const auto height = static_cast<uint64_t>(header.size.height);
  std::string file(bytes);
  if (header.orientation != 1) LS_RETURN_IF_ERROR(Replace(directory, TiffTag::kOrientation, 1, file));
  LS_ASSIGN_OR_RETURN(const uint64_t rows, directory.NumberOr(TiffTag::kRowsPerStrip, height));
  if (rows > height) LS_RETURN_IF_ERROR(Replace(directory, TiffTag::kRowsPerStrip, height, file));
  // libtiff multiplies the colours with an alpha that is not yet in them.
  if (FirstExtraSample(directory) == kUnassociatedAlpha) {
    LS_RETURN_IF_ERROR(Replace(directory, TiffTag::kExtraSamples, kAssociatedAlpha, file));
  }
  LS_RETURN_IF_ERROR(CheckPlain(file, header));
  return file;
}

}  // namespace longshort
