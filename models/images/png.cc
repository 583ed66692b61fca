#include "models/images/png.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/status_macros.h"
#include "models/images/byte_reader.h"
#include "models/images/exif.h"

namespace longshort {
namespace {

constexpr uint64_t kSignatureLength = 8;
// Around the content of a chunk: its length and type before it, its checksum behind it.
constexpr uint64_t kBeforeContent = 8, kAfterContent = 4;

bool IsOfPixels(std::string_view type) {
  constexpr std::array<std::string_view, 5> kTypes = {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace

absl::StatusOr<ImageSize> PngSize(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const std::string_view type, reader.Slice(kSignatureLength + 4, 4));
  if (type != "IHDR") return absl::InvalidArgumentError("the PNG is broken: it does not begin with IHDR");
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(kSignatureLength + kBeforeContent, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(kSignatureLength + kBeforeContent + 4, 4));
  return ImageSize{static_cast<int64_t>(height), static_cast<int64_t>(width)};
}

absl::StatusOr<PlainPng> MakePlainPng(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kBigEndian);
  PlainPng plain;
  plain.file = bytes.substr(0, kSignatureLength);
  for (uint64_t at = kSignatureLength;;) {
    LS_ASSIGN_OR_RETURN(const uint64_t length, reader.Number(at, 4));
    LS_ASSIGN_OR_RETURN(const std::string_view chunk, reader.Slice(at, kBeforeContent + length + kAfterContent));
    const std::string_view type = chunk.substr(4, 4);
    if (type == "eXIf") plain.orientation = ExifOrientation(chunk.substr(kBeforeContent, length));
    if (IsOfPixels(type)) plain.file.append(chunk);
    if (type == "IEND") return plain;
    at += chunk.size();
  }
}

}  // namespace longshort
