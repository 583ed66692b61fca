// The first directory of a TIFF file, classic or BigTIFF: numbered tags with values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/images/byte_reader.h"

namespace longshort {

// TIFF 6.0, section 8; ExtraSamples and SampleFormat: sections 18 and 19.
enum class TiffTag : uint16_t {
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometricInterpretation = 262,
  kOrientation = 274,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kColorMap = 320,
  kTileWidth = 322,
  kTileLength = 323,
  kTileByteCounts = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

// Unsigned numbers only (BYTE, SHORT, LONG, LONG8). The bytes must outlive the directory.
class TiffDirectory final {
 public:
  // Errors: INVALID_ARGUMENT if the bytes are no TIFF, end too early, or list a tag twice.
  static absl::StatusOr<TiffDirectory> Read(std::string_view bytes);

  // Where a number stands in the file.
  struct Place {
    uint64_t offset = 0;
    int length = 0;  // bytes
  };

  ByteOrder order() const { return reader_.order(); }
  // How many values a tag has; 0 if it is not there.
  uint64_t Count(TiffTag tag) const;
  // The value at `index` < Count(tag). Errors: INVALID_ARGUMENT if it is no unsigned number or lies outside the file.
  absl::StatusOr<uint64_t> Number(TiffTag tag, uint64_t index = 0) const;
  // The first value, or `otherwise` if the tag is not there.
  absl::StatusOr<uint64_t> NumberOr(TiffTag tag, uint64_t otherwise) const;
  // Where the value at `index` stands, under the same conditions.
  absl::StatusOr<Place> Find(TiffTag tag, uint64_t index = 0) const;

 private:
  struct Entry {
    uint16_t tag = 0;
    uint16_t type = 0;
    uint64_t count = 0;
    uint64_t value_offset = 0;  // of the field that holds the values, or the offset of where they stand
  };

  TiffDirectory(ByteReader reader, int offset_length) : reader_(reader), offset_length_(offset_length) {}

  absl::Status ReadEntries();
  absl::StatusOr<Entry> ReadEntry(uint64_t at) const;
  const Entry* FindEntry(TiffTag tag) const;

  ByteReader reader_;
  int offset_length_;           // 4; 8 in a BigTIFF
  std::vector<Entry> entries_;  // by tag
};

// Tag "Orientation", or 1 if it is not there or not 1 to 8.
int OrientationOf(const TiffDirectory& directory);

}  // namespace longshort
