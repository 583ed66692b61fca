#include <array>
#include <bit>
#include <cstdint>

#include "models/images/codecs.h"
#include "opencv2/core.hpp"

namespace longshort::models {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kOrientationTag = 274;

// TIFF 6.0, section 2: the types of values, and 13 (IFD) and 16 (LONG8) of its supplements.
enum : uint64_t {
  kShort = 3,
  kLong = 4,
  kRational = 5,
  kSignedByte = 6,
  kSignedRational = 10,
  kFloat = 11,
  kDouble = 12
};
// The size of a value by its type in bytes; 0: no type.
constexpr std::array<uint64_t, 17> kValueSizes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};

// A number that is an orientation, or 1.
template <typename Number>
int ValidOrientation(Number value) {
  for (int orientation = 2; orientation <= 8; ++orientation) {
    if (value == static_cast<Number>(orientation)) return orientation;
  }
  return 1;
}

// The first of the values. Texts and unsigned bytes are no numbers, and so no orientation.
absl::StatusOr<int> FirstValue(const ByteReader& reader, uint64_t type, uint64_t at) {
  const uint64_t size = kValueSizes[type];
  if (type == kRational || type == kSignedRational) {
    LS_ASSIGN_OR_RETURN(const uint64_t numerator, reader.Number(at, 4));
    LS_ASSIGN_OR_RETURN(const uint64_t denominator, reader.Number(at + 4, 4));
    const bool is_signed = type == kSignedRational;
    const auto value = [&](uint64_t bits) {
      return is_signed ? static_cast<int64_t>(static_cast<int32_t>(bits)) : static_cast<int64_t>(bits);
    };
    const int64_t divisor = value(denominator);
    return divisor == 0 || value(numerator) % divisor != 0 ? 1 : ValidOrientation(value(numerator) / divisor);
  }
  if (size == 1 && type != kSignedByte) return 1;
  LS_ASSIGN_OR_RETURN(const uint64_t bits, reader.Number(at, static_cast<int>(size)));
  if (type == kFloat) return ValidOrientation(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == kDouble) return ValidOrientation(std::bit_cast<double>(bits));
  return ValidOrientation(bits);
}

// TIFF 6.0, section 2: a directory has a count, then entries of 12 bytes: tag, type, count, and the values or their
// place. Returns nullopt if the tag is missing. The first valid entry counts. A directory that is cut ends there.
std::optional<int> OrientationInDirectory(const ByteReader& reader, uint64_t directory) {
  const absl::StatusOr<uint64_t> entries = reader.Number(directory, 2);
  uint64_t total_size = 0;  // of values outside the entries
  for (uint64_t i = 0; entries.ok() && i < *entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    if (!reader.Slice(entry, 12).ok()) return std::nullopt;
    const uint64_t tag = *reader.Number(entry, 2), type = *reader.Number(entry + 2, 2);
    const uint64_t values = *reader.Number(entry + 4, 4);
    const uint64_t size = type < kValueSizes.size() ? values * kValueSizes[type] : 0;
    uint64_t place = entry + 8;
    if (size > 4) {
      total_size += size;
      if (total_size > reader.bytes().size()) continue;
      place = *reader.Number(place, 4);
      if (!reader.Slice(place, size).ok()) return std::nullopt;
    }
    if (tag == kOrientationTag && size > 0) return FirstValue(reader, type, place).value_or(1);
  }
  return std::nullopt;
}

// Returns nullopt if the tag "Orientation" is missing, and 1 if the data have no TIFF header.
std::optional<int> OrientationInExif(std::string_view exif) {
  constexpr std::string_view kPrefix = "Exif\0\0"sv;
  for (int prefixes = 0; prefixes < 2 && exif.starts_with(kPrefix); ++prefixes) exif.remove_prefix(kPrefix.size());
  if (exif.empty()) return std::nullopt;
  // Some programs write the number 42 in the other byte order.
  const bool little = exif.starts_with("II*\0"sv) || exif.starts_with("II\0*"sv);
  const bool big = exif.starts_with("MM\0*"sv) || exif.starts_with("MM*\0"sv);
  if (!little && !big) return 1;
  const ByteReader reader(exif, little ? ByteOrder::kLittleEndian : ByteOrder::kBigEndian);
  const absl::StatusOr<uint64_t> directory = reader.Number(4, 4);
  return directory.ok() ? OrientationInDirectory(reader, *directory) : 1;
}

// The first attribute or element tiff:Orientation with a digit.
int OrientationInXmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at)) {
    at += kName.size();
    std::string_view value = xmp.substr(at);
    if (value.starts_with("=\"")) {
      value.remove_prefix(2);
    } else if (value.starts_with('>')) {
      value.remove_prefix(1);
    } else {
      continue;
    }
    if (!value.empty() && value[0] >= '0' && value[0] <= '9') return ValidOrientation(value[0] - '0');
  }
  return 1;
}

}  // namespace

int OrientationOf(const ImageMetadata& metadata) {
  const std::optional<int> by_exif = OrientationInExif(metadata.exif);
  return by_exif.has_value() ? *by_exif : OrientationInXmp(metadata.xmp);
}

cv::Mat Upright(const cv::Mat& stored, int orientation) {
  constexpr int kTopToBottom = 0, kLeftToRight = 1, kBoth = -1;
  cv::Mat upright;
  switch (orientation) {
    case 2:
      cv::flip(stored, upright, kLeftToRight);
      return upright;
    case 3:
      cv::rotate(stored, upright, cv::ROTATE_180);
      return upright;
    case 4:
      cv::flip(stored, upright, kTopToBottom);
      return upright;
    case 5:
      cv::transpose(stored, upright);
      return upright;
    case 6:
      cv::rotate(stored, upright, cv::ROTATE_90_CLOCKWISE);
      return upright;
    case 7:
      cv::transpose(stored, upright);
      cv::flip(upright, upright, kBoth);
      return upright;
    case 8:
      cv::rotate(stored, upright, cv::ROTATE_90_COUNTERCLOCKWISE);
      return upright;
    default:
      return stored;
  }
}

}  // namespace longshort::models
