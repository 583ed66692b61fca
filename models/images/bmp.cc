#include "models/images/bmp.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/byte_reader.h"

namespace longshort {
namespace {

// Lengths of the second header: OS/2's, and the shortest of Windows.
constexpr uint64_t kCoreHeader = 12, kInfoHeader = 40;
constexpr uint64_t kFileHeader = 14;
// Where the masks stand: last in the info header's extensions, or right behind it.
constexpr uint64_t kMasksOffset = kFileHeader + kInfoHeader;
constexpr uint64_t kRunLengths8 = 1, kRunLengths4 = 2, kBitFields = 3;
constexpr BmpMasks kFiveBitMasks = {0x7C00, 0x03E0, 0x001F};
constexpr BmpMasks kByteMasks = {0xFF0000, 0xFF00, 0xFF};

absl::Status NotDecoded(std::string_view what, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrFormat("a BMP with %s %d is not decoded", std::string(what), value));
}

absl::Status CheckMask(uint32_t mask, int bits_per_pixel) {
  if (mask == 0 || (bits_per_pixel < 32 && mask >> bits_per_pixel != 0)) return NotDecoded("bit mask", mask);
  const uint32_t largest = mask / (mask & -mask);
  const bool one_run = (largest & (largest + 1)) == 0;
  return one_run && largest <= 255 ? absl::OkStatus() : NotDecoded("bit mask", mask);
}

absl::StatusOr<BmpMasks> ReadMasks(const ByteReader& reader, int bits_per_pixel) {
  BmpMasks masks;
  for (size_t channel = 0; channel < masks.size(); ++channel) {
    LS_ASSIGN_OR_RETURN(const uint64_t mask, reader.Number(kMasksOffset + 4 * channel, 4));
    masks[channel] = static_cast<uint32_t>(mask);
    LS_RETURN_IF_ERROR(CheckMask(masks[channel], bits_per_pixel));
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
  header.palette = {.offset = kFileHeader + kCoreHeader, .entry_bytes = 3, .entries = 256};
  if (bits == 16) return NotDecoded("OS/2's header and bits a pixel", bits);
  return header;
}

absl::StatusOr<BmpHeader> ReadInfoHeader(const ByteReader& reader, uint64_t length) {
  BmpHeader header;
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(18, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(22, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t bits, reader.Number(28, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t compression, reader.Number(30, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t colours, reader.Number(46, 4));
  const int64_t signed_height = static_cast<int32_t>(static_cast<uint32_t>(height));
  header.size = {std::abs(signed_height), static_cast<int32_t>(static_cast<uint32_t>(width))};
  header.top_down = signed_height < 0;
  header.bits_per_pixel = static_cast<int>(bits);
  header.palette.offset = kFileHeader + length;
  header.palette.entries = colours == 0 || colours > 256 ? 256 : static_cast<int>(colours);
  header.run_lengths = compression == kRunLengths8 || compression == kRunLengths4;
  if (compression > kBitFields) return NotDecoded("compression", compression);
  if (header.run_lengths && bits != (compression == kRunLengths8 ? 8 : 4)) {
    return NotDecoded("run lengths in pixels of bits", bits);
  }
  if (compression == kBitFields) {
    if (bits != 16 && bits != 32) return NotDecoded("bit fields in pixels of bits", bits);
    LS_ASSIGN_OR_RETURN(header.masks, ReadMasks(reader, header.bits_per_pixel));
  } else if (bits == 16) {
    header.masks = kFiveBitMasks;
  }
  return header;
}

}  // namespace

absl::StatusOr<BmpHeader> ReadBmpHeader(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kLittleEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t pixels_offset, reader.Number(10, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t length, reader.Number(14, 4));
  if (length != kCoreHeader && length < kInfoHeader) return NotDecoded("a header of bytes", length);
  auto header = length == kCoreHeader ? ReadCoreHeader(reader) : ReadInfoHeader(reader, length);
  if (!header.ok()) return header;
  const int bits = header->bits_per_pixel;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return NotDecoded("bits a pixel", static_cast<uint64_t>(bits));
  }
  if (!header->masks.has_value() && bits > 8) header->masks = kByteMasks;
  if (bits <= 8) header->palette.entries = std::min(header->palette.entries, 1 << bits);
  header->pixels_offset = pixels_offset;
  return header;
}

}  // namespace longshort
