#include "models/images/bmp.h"

#include <cstdlib>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/byte_reader.h"

namespace longshort {
namespace {

// Lengths of the second header: OS/2's, and the shortest of Windows.
constexpr uint64_t kCoreHeader = 12, kInfoHeader = 40;
// Where the masks stand: last in the info header's extensions, or right behind it.
constexpr uint64_t kMasksOffset = 14 + kInfoHeader;
constexpr uint64_t kNotCompressed = 0, kBitFields = 3;
constexpr BmpMasks kFiveBitMasks = {0x7C00, 0x03E0, 0x001F};

absl::Status NotDecoded(std::string_view what, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrFormat("a BMP with %s %d is not decoded", std::string(what), value));
}

// One channel's bits: (pixel >> shift) & largest.
struct Field {
  int shift = 0;
  uint32_t largest = 0;
};

absl::StatusOr<Field> FieldOf(uint32_t mask, int bits_per_pixel) {
  if (mask == 0 || (bits_per_pixel < 32 && mask >> bits_per_pixel != 0)) return NotDecoded("bit mask", mask);
  Field field;
  while ((mask >> field.shift & 1) == 0) ++field.shift;
  field.largest = mask >> field.shift;
  const bool one_run = (field.largest & (field.largest + 1)) == 0;
  if (!one_run || field.largest > 255) return NotDecoded("bit mask", mask);
  return field;
}

absl::StatusOr<BmpMasks> ReadMasks(const ByteReader& reader) {
  BmpMasks masks;
  for (size_t channel = 0; channel < masks.size(); ++channel) {
    LS_ASSIGN_OR_RETURN(const uint64_t mask, reader.Number(kMasksOffset + 4 * channel, 4));
    masks[channel] = static_cast<uint32_t>(mask);
  }
  return masks;
}

absl::StatusOr<BmpHeader> ReadCoreHeader(const ByteReader& reader) {
  BmpHeader header;
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(18, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(20, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t bits, reader.Number(24, 2));
  header.size = {static_cast<int64_t>(height), static_cast<int64_t>(width)};
  header.bits_per_pixel = static_cast<int>(bits);
  return header;
}

absl::StatusOr<BmpHeader> ReadInfoHeader(const ByteReader& reader) {
  BmpHeader header;
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(18, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(22, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t bits, reader.Number(28, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t compression, reader.Number(30, 4));
  const int64_t signed_height = static_cast<int32_t>(static_cast<uint32_t>(height));
  header.size = {std::abs(signed_height), static_cast<int32_t>(static_cast<uint32_t>(width))};
  header.top_down = signed_height < 0;
  header.bits_per_pixel = static_cast<int>(bits);
  if (compression > kBitFields) return NotDecoded("compression", compression);
  const bool wide = bits == 16 || bits == 32;
  if (compression == kBitFields && !wide) return NotDecoded("bit fields in pixels of bits", bits);
  if (compression == kBitFields) {
    LS_ASSIGN_OR_RETURN(header.masks, ReadMasks(reader));
    for (const uint32_t mask : *header.masks) LS_RETURN_IF_ERROR(FieldOf(mask, header.bits_per_pixel).status());
  } else if (compression == kNotCompressed && bits == 16) {
    header.masks = kFiveBitMasks;
  }
  return header;
}

// Both fit a byte: a field's value to 0..255, for all values.
std::array<uint8_t, 256> ScaleTable(const Field& field) {
  std::array<uint8_t, 256> table = {};
  for (uint32_t value = 0; value <= field.largest; ++value) {
    table[value] = static_cast<uint8_t>(value * 255 / field.largest);
  }
  return table;
}

}  // namespace

absl::StatusOr<BmpHeader> ReadBmpHeader(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kLittleEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t pixels_offset, reader.Number(10, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t length, reader.Number(14, 4));
  if (length != kCoreHeader && length < kInfoHeader) return NotDecoded("a header of bytes", length);
  auto header = length == kCoreHeader ? ReadCoreHeader(reader) : ReadInfoHeader(reader);
  if (!header.ok()) return header;
  header->pixels_offset = pixels_offset;
  return header;
}

absl::StatusOr<RgbImage> DecodeBmpBitFields(std::string_view bytes, const BmpHeader& header) {
  const ByteReader reader(bytes, ByteOrder::kLittleEndian);
  const auto [height, width] = header.size;
  const int pixel_bytes = header.bits_per_pixel / 8;
  const uint64_t row_bytes = static_cast<uint64_t>(width * pixel_bytes + 3) / 4 * 4;
  LS_RETURN_IF_ERROR(reader.Slice(header.pixels_offset, row_bytes * static_cast<uint64_t>(height)).status());

  RgbImage image{header.size, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  for (size_t channel = 0; channel < header.masks->size(); ++channel) {
    LS_ASSIGN_OR_RETURN(const Field field, FieldOf((*header.masks)[channel], header.bits_per_pixel));
    const std::array<uint8_t, 256> scaled = ScaleTable(field);
    for (int64_t y = 0; y < height; ++y) {
      const int64_t stored_row = header.top_down ? y : height - 1 - y;
      const uint64_t row = header.pixels_offset + static_cast<uint64_t>(stored_row) * row_bytes;
      uint8_t* out = image.values.data() + y * width * 3 + static_cast<int64_t>(channel);
      for (int64_t x = 0; x < width; ++x) {
        LS_ASSIGN_OR_RETURN(const uint64_t pixel,
                            reader.Number(row + static_cast<uint64_t>(x * pixel_bytes), pixel_bytes));
        out[3 * x] = scaled[pixel >> field.shift & field.largest];
      }
    }
  }
  return image;
}

}  // namespace longshort
