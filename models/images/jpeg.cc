#include "models/images/jpeg.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/byte_reader.h"
#include "models/images/exif.h"

namespace longshort {
namespace {

using namespace std::string_view_literals;

// Second bytes of markers, ITU-T T.81 table B.1.
constexpr uint8_t kTemporary = 0x01;
constexpr uint8_t kFirstDefined = 0xC0;
constexpr uint8_t kFirstFrame = 0xC0, kLastFrame = 0xCF;
constexpr uint8_t kHuffmanTables = 0xC4, kReservedFrame = 0xC8, kArithmeticConditions = 0xCC;
constexpr uint8_t kFirstRestart = 0xD0, kLastRestart = 0xD7;
constexpr uint8_t kStartOfImage = 0xD8, kEndOfImage = 0xD9, kStartOfScan = 0xDA;
constexpr uint8_t kApplication0 = 0xE0, kApplication1 = 0xE1, kApplication14 = 0xEE, kApplication15 = 0xEF;
constexpr uint8_t kComment = 0xFE;

constexpr std::string_view kExifPrefix = "Exif\0\0"sv;

bool IsFrameHeader(uint8_t marker) {
  return marker >= kFirstFrame && marker <= kLastFrame && marker != kHuffmanTables && marker != kReservedFrame &&
         marker != kArithmeticConditions;
}

bool HasNoLength(uint8_t marker) {
  return (marker >= kFirstRestart && marker <= kLastRestart) || marker == kTemporary || marker == kEndOfImage;
}

// Notes to other programs. The first application's (JFIF) and the 14th's (Adobe) say what the colours are.
bool IsNote(uint8_t marker) {
  return (marker > kApplication0 && marker <= kApplication15 && marker != kApplication14) || marker == kComment;
}

struct Segment {
  uint8_t marker = 0;
  size_t begin = 0;          // of its marker
  size_t end = 0;            // behind its content
  std::string_view content;  // without its length
};

// Goes from marker to marker; the data of a scan, in which 0xFF is followed by 0, are passed over like any other bytes
// between two segments.
class SegmentReader final {
 public:
  explicit SegmentReader(std::string_view bytes) : reader_(bytes, ByteOrder::kBigEndian) {}

  absl::StatusOr<Segment> Next() {
    LS_ASSIGN_OR_RETURN(const uint8_t marker, NextMarker());
    const size_t begin = at_ - 2;
    if (HasNoLength(marker)) return Segment{marker, begin, at_, {}};
    if (marker < kFirstDefined || marker == kStartOfImage) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG is broken: marker %#x before byte %d", marker, at_));
    }
    LS_ASSIGN_OR_RETURN(const uint64_t length, reader_.Number(at_, 2));
    if (length < 2) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG is broken: a segment of %d bytes", length));
    }
    LS_ASSIGN_OR_RETURN(const std::string_view content, reader_.Slice(at_ + 2, length - 2));
    at_ += length;
    return Segment{marker, begin, at_, content};
  }

 private:
  // The second byte of the next marker, past any number of fill bytes 0xFF.
  absl::StatusOr<uint8_t> NextMarker() {
    const std::string_view bytes = reader_.bytes();
    while ((at_ = bytes.find('\xFF', at_)) != std::string_view::npos) {
      at_ = bytes.find_first_not_of('\xFF', at_);
      if (at_ == std::string_view::npos) break;
      const auto marker = static_cast<uint8_t>(bytes[at_++]);
      if (marker != 0) return marker;
    }
    return absl::InvalidArgumentError("the image is truncated: the JPEG has no end marker");
  }

  ByteReader reader_;
  size_t at_ = 2;  // after the start of the image
};

// ITU-T T.81 B.2.2: precision, height, width.
absl::StatusOr<ImageSize> FrameSize(const Segment& frame) {
  const bool lossless = frame.marker % 4 == 3;
  const bool differential = frame.marker % 8 > 4;
  if (lossless || differential) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a JPEG with frame type %#x (lossless or differential) is not decoded", frame.marker));
  }
  const ByteReader reader(frame.content, ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t precision, reader.Number(0, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(1, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(3, 2));
  if (precision != 8) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a JPEG of %d bits a sample is not decoded, only of 8", precision));
  }
  return ImageSize{static_cast<int64_t>(height), static_cast<int64_t>(width)};
}

int MostScans(const ImageSize& size) {
  const int64_t pixels = std::max<int64_t>(size.height * size.width, 1);
  return static_cast<int>(std::clamp<int64_t>(kMaxScannedPixels / pixels, kMaxScansOfLargeJpeg, kMaxJpegScans));
}

}  // namespace

absl::StatusOr<ImageSize> JpegSize(std::string_view bytes) {
  SegmentReader reader(bytes);
  while (true) {
    LS_ASSIGN_OR_RETURN(const Segment segment, reader.Next());
    if (IsFrameHeader(segment.marker)) return FrameSize(segment);
    if (segment.marker == kStartOfScan || segment.marker == kEndOfImage) {
      return absl::InvalidArgumentError("the JPEG is broken: no frame header before the first scan");
    }
  }
}

absl::StatusOr<PlainJpeg> MakePlainJpeg(std::string_view bytes) {
  SegmentReader reader(bytes);
  PlainJpeg plain;
  int frames = 0, scans = 0, most_scans = kMaxJpegScans;
  bool exif_seen = false;
  size_t copied = 0;
  const auto copy_until = [&](size_t end) { plain.file.append(bytes.substr(copied, end - copied)); };
  while (true) {
    LS_ASSIGN_OR_RETURN(const Segment segment, reader.Next());
    if (segment.marker == kEndOfImage) {
      copy_until(segment.end);
      break;
    }
    if (IsFrameHeader(segment.marker)) {
      if (++frames > 1) return absl::InvalidArgumentError("the JPEG is broken: it has two frame headers");
      LS_ASSIGN_OR_RETURN(const ImageSize size, FrameSize(segment));
      most_scans = MostScans(size);
    }
    if (segment.marker == kStartOfScan && ++scans > most_scans) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG has more than %d scans", most_scans));
    }
    if (segment.marker == kApplication1 && !exif_seen && segment.content.starts_with(kExifPrefix)) {
      exif_seen = true;
      plain.orientation = ExifOrientation(segment.content.substr(kExifPrefix.size()));
    }
    if (IsNote(segment.marker)) {
      copy_until(segment.begin);
      copied = segment.end;
    }
  }
  if (scans == 0) return absl::InvalidArgumentError("the JPEG is broken: it has no scan");
  return plain;
}

}  // namespace longshort
