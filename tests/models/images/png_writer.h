// Writes PNG files of given pixels.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

#include "base/byte_order.h"

namespace longshort::models {

inline std::string PngChunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto check = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  std::string chunk(8, '\0');
  WriteNumber(content.size(), ByteOrder::kBigEndian, 4, chunk.data());
  WriteNumber(check, ByteOrder::kBigEndian, 4, chunk.data() + 4);
  return chunk.substr(0, 4) + body + chunk.substr(4);
}

enum class PngColours : char { kGrey = 0, kRgb = 2 };

// `rows`: each a byte 0 (no filter) and its samples, of `bits` 8 or 16 (high byte first).
inline std::string PngOf(uint32_t width, uint32_t height, int bits, PngColours colours, const std::string& rows) {
  std::string header(13, '\0');
  WriteNumber(width, ByteOrder::kBigEndian, 4, header.data());
  WriteNumber(height, ByteOrder::kBigEndian, 4, header.data() + 4);
  header[8] = static_cast<char>(bits);
  header[9] = static_cast<char>(colours);
  uLongf length = compressBound(rows.size());
  std::string packed(length, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &length, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(length);
  return "\x89PNG\r\n\x1A\n" + PngChunk("IHDR", header) + PngChunk("IDAT", packed) + PngChunk("IEND", "");
}

}  // namespace longshort::models
