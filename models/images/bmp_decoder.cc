#include "models/images/bmp_decoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/byte_order.h"
#include "base/status_macros.h"
#include "models/images/byte_reader.h"

namespace longshort {
namespace {

// Blue, green, red.
using Colours = std::array<std::array<uint8_t, 3>, 256>;

RgbImage BlackImage(const ImageSize& size) {
  return {size, std::vector<uint8_t>(static_cast<size_t>(size.height * size.width * 3))};
}

// Where the row that is stored as number `row` begins in the image, of so many bytes a pixel.
int64_t Begin(const BmpHeader& header, int64_t row, int64_t pixel_bytes) {
  return (header.top_down ? row : header.size.height - 1 - row) * header.size.width * pixel_bytes;
}

// The rows, each padded to 4 bytes. Errors: INVALID_ARGUMENT if they are not all there.
absl::StatusOr<std::string_view> Rows(const ByteReader& reader, const BmpHeader& header, uint64_t* row_bytes) {
  *row_bytes = (static_cast<uint64_t>(header.size.width * header.bits_per_pixel) + 31) / 32 * 4;
  return reader.Slice(header.pixels_offset, *row_bytes * static_cast<uint64_t>(header.size.height));
}

// What a field of (pixel & mask) becomes, by its value.
std::array<uint8_t, 256> ScaleTable(uint32_t largest) {
  std::array<uint8_t, 256> table = {};
  for (uint32_t value = 0; value <= largest; ++value) table[value] = static_cast<uint8_t>(value * 255 / largest);
  return table;
}

absl::StatusOr<RgbImage> DecodeFields(const ByteReader& reader, const BmpHeader& header) {
  uint64_t row_bytes = 0;
  LS_ASSIGN_OR_RETURN(const std::string_view rows, Rows(reader, header, &row_bytes));
  RgbImage image = BlackImage(header.size);
  const size_t pixel_bytes = static_cast<size_t>(header.bits_per_pixel) / 8;
  for (size_t channel = 0; channel < header.masks->size(); ++channel) {
    const uint32_t mask = (*header.masks)[channel];
    const int shift = std::countr_zero(mask);
    const std::array<uint8_t, 256> scaled = ScaleTable(mask >> shift);
    for (int64_t row = 0; row < header.size.height; ++row) {
      const char* in = rows.data() + static_cast<uint64_t>(row) * row_bytes;
      uint8_t* out = image.values.data() + Begin(header, row, 3) + channel;
      for (int64_t x = 0; x < header.size.width; ++x, in += pixel_bytes, out += 3) {
        const auto pixel = static_cast<uint32_t>(ReadNumber({in, pixel_bytes}, ByteOrder::kLittleEndian));
        *out = scaled[(pixel & mask) >> shift];
      }
    }
  }
  return image;
}

absl::StatusOr<Colours> ReadColours(const ByteReader& reader, const BmpPalette& palette) {
  const auto entry_bytes = static_cast<uint64_t>(palette.entry_bytes);
  LS_ASSIGN_OR_RETURN(const std::string_view entries,
                      reader.Slice(palette.offset, entry_bytes * static_cast<uint64_t>(palette.entries)));
  Colours colours = {};
  for (size_t entry = 0; entry < static_cast<size_t>(palette.entries); ++entry) {
    for (size_t channel = 0; channel < 3; ++channel) {
      colours[entry][channel] = static_cast<uint8_t>(entries[entry * entry_bytes + channel]);
    }
  }
  return colours;
}

// The pixel at `x` of bytes that hold so many bits a pixel, the first one in the highest bits.
uint8_t IndexAt(std::string_view bytes, int64_t x, int bits) {
  const int64_t in_a_byte = 8 / bits;
  const auto byte = static_cast<uint8_t>(bytes[x / in_a_byte]);
  return static_cast<uint8_t>(byte >> (8 - bits - bits * (x % in_a_byte)) & ((1 << bits) - 1));
}

// [height, width] indices upright.
absl::StatusOr<std::vector<uint8_t>> ReadIndices(const ByteReader& reader, const BmpHeader& header) {
  uint64_t row_bytes = 0;
  LS_ASSIGN_OR_RETURN(const std::string_view rows, Rows(reader, header, &row_bytes));
  std::vector<uint8_t> indices(static_cast<size_t>(header.size.height * header.size.width));
  for (int64_t row = 0; row < header.size.height; ++row) {
    const std::string_view in = rows.substr(static_cast<uint64_t>(row) * row_bytes, row_bytes);
    uint8_t* out = indices.data() + Begin(header, row, 1);
    for (int64_t x = 0; x < header.size.width; ++x) out[x] = IndexAt(in, x, header.bits_per_pixel);
  }
  return indices;
}

// The same of run lengths: pairs of a count and the byte that is repeated, or of 0 and what else is to be done.
absl::StatusOr<std::vector<uint8_t>> ReadRuns(const ByteReader& reader, const BmpHeader& header) {
  constexpr uint64_t kEndOfRow = 0, kEndOfImage = 1, kMove = 2;
  const auto [height, width] = header.size;
  const int bits = header.bits_per_pixel;
  std::vector<uint8_t> indices(static_cast<size_t>(height * width));
  uint64_t at = header.pixels_offset;
  int64_t x = 0, row = 0;
  while (row < height && !(row == height - 1 && x == width)) {
    LS_ASSIGN_OR_RETURN(const uint64_t count, reader.Number(at, 1));
    LS_ASSIGN_OR_RETURN(const uint64_t second, reader.Number(at + 1, 1));
    at += 2;
    if (count == 0 && second == kEndOfImage) break;
    if (count == 0 && second == kEndOfRow) {
      x = 0;
      ++row;
      continue;
    }
    if (count == 0 && second == kMove) {
      LS_ASSIGN_OR_RETURN(const uint64_t right, reader.Number(at, 1));
      LS_ASSIGN_OR_RETURN(const uint64_t down, reader.Number(at + 1, 1));
      at += 2;
      x += static_cast<int64_t>(right);
      row += static_cast<int64_t>(down);
      continue;
    }
    // `second` pixels stand there, padded to 2 bytes; or `count` pixels are made of the one byte.
    const auto pixels = static_cast<int64_t>(count == 0 ? second : count);
    if (x + pixels > width) return absl::InvalidArgumentError("the BMP image is broken: a run goes beyond its row");
    uint8_t* out = indices.data() + Begin(header, row, 1) + x;
    if (count == 0) {
      const uint64_t bytes = (second * static_cast<uint64_t>(bits) + 7) / 8;
      LS_ASSIGN_OR_RETURN(const std::string_view in, reader.Slice(at, bytes));
      for (int64_t i = 0; i < pixels; ++i) out[i] = IndexAt(in, i, bits);
      at += bytes + bytes % 2;
    } else {
      const auto repeated = static_cast<char>(second);
      for (int64_t i = 0; i < pixels; ++i) out[i] = IndexAt({&repeated, 1}, i % (8 / bits), bits);
    }
    x += pixels;
  }
  return indices;
}

}  // namespace

absl::StatusOr<RgbImage> DecodeBmp(std::string_view bytes, const BmpHeader& header) {
  const ByteReader reader(bytes, ByteOrder::kLittleEndian);
  if (header.masks.has_value()) return DecodeFields(reader, header);
  LS_ASSIGN_OR_RETURN(const Colours colours, ReadColours(reader, header.palette));
  LS_ASSIGN_OR_RETURN(const std::vector<uint8_t> indices,
                      header.run_lengths ? ReadRuns(reader, header) : ReadIndices(reader, header));
  RgbImage image = BlackImage(header.size);
  uint8_t* out = image.values.data();
  for (const uint8_t index : indices) out = std::reverse_copy(colours[index].begin(), colours[index].end(), out);
  return image;
}

}  // namespace longshort
