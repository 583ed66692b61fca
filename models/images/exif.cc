#include <cstdint>

#include "models/images/byte_reader.h"
#include "models/images/codecs.h"
#include "opencv2/core.hpp"

namespace longshort::models {
namespace {

constexpr uint64_t kOrientationTag = 274;
constexpr uint64_t kShort = 3, kLong = 4;  // types of values

// TIFF 6.0, section 2: the directory has a count, then entries of 12 bytes: tag, type, count, value.
absl::StatusOr<uint64_t> ReadOrientation(std::string_view exif) {
  const bool little = exif.starts_with("II");
  const ByteReader reader(exif, little ? ByteOrder::kLittleEndian : ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t directory, reader.Number(4, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t count, reader.Number(directory, 2));
  for (uint64_t entry = directory + 2; entry < directory + 2 + 12 * count; entry += 12) {
    LS_ASSIGN_OR_RETURN(const uint64_t tag, reader.Number(entry, 2));
    if (tag != kOrientationTag) continue;
    LS_ASSIGN_OR_RETURN(const uint64_t type, reader.Number(entry + 2, 2));
    LS_ASSIGN_OR_RETURN(const uint64_t values, reader.Number(entry + 4, 4));
    if (values != 1 || (type != kShort && type != kLong)) return 1;
    return reader.Number(entry + 8, type == kShort ? 2 : 4);
  }
  return 1;
}

}  // namespace

int ExifOrientation(std::string_view exif) {
  const absl::StatusOr<uint64_t> orientation = ReadOrientation(exif);
  return orientation.ok() && *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
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
