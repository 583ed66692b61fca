#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "models/images/codecs.h"
// libjpeg's header needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort::models {
namespace {

using namespace std::string_view_literals;

// Second bytes of markers, ITU-T T.81 table B.1.
constexpr uint8_t kTemporary = 0x01;
constexpr uint8_t kFirstDefined = 0xC0;
constexpr uint8_t kFirstFrame = 0xC0, kLastFrame = 0xCF;
constexpr uint8_t kHuffmanTables = 0xC4, kReservedFrame = 0xC8, kArithmeticConditions = 0xCC;
constexpr uint8_t kFirstRestart = 0xD0, kLastRestart = 0xD7;
constexpr uint8_t kStartOfImage = 0xD8, kEndOfImage = 0xD9, kStartOfScan = 0xDA;
constexpr uint8_t kApplication1 = 0xE1;

constexpr std::string_view kExifPrefix = "Exif\0\0"sv;
constexpr size_t kAfterStartOfImage = 2;

bool IsFrameHeader(uint8_t marker) {
  return marker >= kFirstFrame && marker <= kLastFrame && marker != kHuffmanTables && marker != kReservedFrame &&
         marker != kArithmeticConditions;
}

bool HasNoLength(uint8_t marker) {
  return (marker >= kFirstRestart && marker <= kLastRestart) || marker == kTemporary || marker == kEndOfImage;
}

struct Segment {
  uint8_t marker = 0;
  size_t end = 0;            // after its content
  std::string_view content;  // without its length
};

// Reads segment by segment. Skips all bytes between two segments, such as the data of a scan, in which 0 follows each
// 0xFF.
class SegmentReader final {
 public:
  // `start`: the end of a segment, or of the start of the image.
  SegmentReader(std::string_view bytes, size_t start) : reader_(bytes, ByteOrder::kBigEndian), at_(start) {}

  absl::StatusOr<Segment> Next() {
    LS_ASSIGN_OR_RETURN(const uint8_t marker, NextMarker());
    if (HasNoLength(marker)) return Segment{marker, at_, {}};
    if (marker < kFirstDefined || marker == kStartOfImage) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG is broken: marker %#x before byte %d", marker, at_));
    }
    LS_ASSIGN_OR_RETURN(const uint64_t length, reader_.Number(at_, 2));
    if (length < 2) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG is broken: a segment of %d bytes", length));
    }
    LS_ASSIGN_OR_RETURN(const std::string_view content, reader_.Slice(at_ + 2, length - 2));
    at_ += length;
    return Segment{marker, at_, content};
  }

 private:
  // The second byte of the next marker, after any number of fill bytes 0xFF.
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
  size_t at_;
};

// ITU-T T.81 B.2.2: precision, height, width.
absl::StatusOr<ImageSize> FrameSize(const Segment& frame) {
  const bool lossless = frame.marker % 4 == 3;
  const bool differential = frame.marker % 8 > 4;
  if (lossless || differential) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a JPEG with frame type %#x (lossless or differential) is not supported", frame.marker));
  }
  const ByteReader reader(frame.content, ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t precision, reader.Number(0, 1));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(1, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(3, 2));
  if (precision != 8) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a JPEG of %d bits per sample is not supported; it must have 8", precision));
  }
  return ImageSize{static_cast<int64_t>(height), static_cast<int64_t>(width)};
}

int MaxScans(const ImageSize& size) {
  const int64_t pixels = std::max<int64_t>(size.height * size.width, 1);
  return static_cast<int>(std::clamp<int64_t>(kMaxScannedPixels / pixels, kMaxScansOfLargeJpeg, kMaxJpegScans));
}

// The state of libjpeg's callbacks. A callback reports an error with a longjmp to the caller of libjpeg, so no object
// in between may have a destructor.
struct JpegReading {
  jpeg_error_mgr errors = {};
  std::jmp_buf start = {};
  bool failed = false;
  bool without_memory = false;
  std::array<char, JMSG_LENGTH_MAX> error = {};
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto& reading = *static_cast<JpegReading*>(info->client_data);
  reading.failed = true;
  reading.without_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  info->err->format_message(info, reading.error.data());
  std::longjmp(reading.start, 1);
}

void OnMessage(j_common_ptr /*info*/) {}

// Grey is decoded as grey, CMYK and YCCK as four inks, and all other colour spaces as RGB.
J_COLOR_SPACE DecodedColours(const jpeg_decompress_struct& info) {
  if (info.num_components == 1) return JCS_GRAYSCALE;
  return info.num_components == 4 ? JCS_CMYK : JCS_RGB;
}

int DecodedChannels(const jpeg_decompress_struct& info) {
  return info.num_components == 1 || info.num_components == 4 ? info.num_components : 3;
}

// libjpeg reports an error with a longjmp to this function, so no object in it may have a destructor.
bool ReadHeader(jpeg_decompress_struct& info, std::string_view file, int divisor, JpegReading& reading) {
  if (setjmp(reading.start) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = DecodedColours(info);
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(divisor);
  jpeg_calc_output_dimensions(&info);
  return true;
}

// As for ReadHeader, no object may have a destructor. `pixels` has the size and the channels of the output.
void ReadRows(jpeg_decompress_struct& info, const cv::Mat& pixels, JpegReading& reading) {
  if (setjmp(reading.start) != 0) return;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data + info.output_scanline * pixels.step[0];
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
}

// Rounds value * of / 255.
int Part(int value, int of) {
  const int product = value * of + 128;
  return (product + (product >> 8)) >> 8;
}

// Converts cyan, magenta, yellow and black to RGB. Each is stored as 255 minus the ink, as Adobe's programs do.
cv::Mat ColoursOfInks(const cv::Mat& inks) {
  cv::Mat colours(inks.size(), CV_8UC3);
  for (int y = 0; y < inks.rows; ++y) {
    const uint8_t* in = inks.ptr(y);
    uint8_t* out = colours.ptr(y);
    for (int x = 0; x < inks.cols; ++x, in += 4) {
      for (int ink = 0; ink < 3; ++ink) *out++ = static_cast<uint8_t>(in[3] - Part(255 - in[ink], in[3]));
    }
  }
  return colours;
}

// The samples as libjpeg decodes them: grey, RGB, or four inks.
absl::StatusOr<cv::Mat> DecodeSamples(std::string_view file, const ImageSize& size, int divisor) {
  JpegReading reading;
  jpeg_decompress_struct info = {};
  info.err = jpeg_std_error(&reading.errors);
  info.client_data = &reading;
  reading.errors.error_exit = OnError;
  reading.errors.output_message = OnMessage;

  const absl::Cleanup destroy = [&info] { jpeg_destroy_decompress(&info); };
  cv::Mat samples;
  if (ReadHeader(info, file, divisor, reading)) {
    if (info.image_width != size.width || info.image_height != size.height) {
      return absl::InvalidArgumentError("the image is broken: its data contradict its header");
    }
    samples.create(static_cast<int>(info.output_height), static_cast<int>(info.output_width),
                   CV_8UC(DecodedChannels(info)));
    ReadRows(info, samples, reading);
  }
  if (reading.without_memory) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("not enough memory to decode an image of %d x %d pixels", size.width, size.height));
  }
  if (reading.failed) {
    return absl::InvalidArgumentError(absl::StrCat("the JPEG image cannot be decoded: ", reading.error.data()));
  }
  return samples;
}

// Adds the segment's EXIF data or XMP. EXIF data may continue in further segments. The last XMP counts.
void AddMetadata(const Segment& segment, ImageMetadata& metadata) {
  constexpr std::string_view kXmpPrefix = "http://ns.adobe.com/xap/1.0/\0"sv;
  if (segment.marker != kApplication1) return;
  if (segment.content.starts_with(kExifPrefix)) {
    metadata.exif.append(segment.content.substr(metadata.exif.empty() ? 0 : kExifPrefix.size()));
  } else if (segment.content.starts_with(kXmpPrefix)) {
    metadata.xmp = segment.content.substr(kXmpPrefix.size());
  }
}

struct CheckedJpeg {
  uint64_t end = 0;        // of the image
  ImageMetadata metadata;  // before the first scan
};

absl::StatusOr<CheckedJpeg> CheckSegments(std::string_view bytes, const ImageHeader& header) {
  const int max_scans = MaxScans(header.size);
  CheckedJpeg checked;
  SegmentReader reader(bytes, kAfterStartOfImage);
  for (int frames = 0, scans = 0;;) {
    LS_ASSIGN_OR_RETURN(const Segment segment, reader.Next());
    if (segment.marker == kEndOfImage) {
      if (scans == 0) return absl::InvalidArgumentError("the JPEG is broken: it has no scan");
      checked.end = segment.end;
      return checked;
    }
    if (IsFrameHeader(segment.marker) && ++frames > 1) {
      return absl::InvalidArgumentError("the JPEG is broken: it has two frame headers");
    }
    if (segment.marker == kStartOfScan && ++scans > max_scans) {
      return absl::InvalidArgumentError(absl::StrFormat("the JPEG has more than %d scans", max_scans));
    }
    if (scans == 0) AddMetadata(segment, checked.metadata);
  }
}

}  // namespace

absl::StatusOr<ImageHeader> ReadJpegHeader(std::string_view bytes) {
  SegmentReader reader(bytes, kAfterStartOfImage);
  ImageHeader header;
  header.format = ImageFormat::kJpeg;
  while (true) {
    LS_ASSIGN_OR_RETURN(const Segment segment, reader.Next());
    if (IsFrameHeader(segment.marker)) {
      LS_ASSIGN_OR_RETURN(header.size, FrameSize(segment));
      return header;
    }
    if (segment.marker == kStartOfScan || segment.marker == kEndOfImage) {
      return absl::InvalidArgumentError("the JPEG is broken: no frame header before the first scan");
    }
  }
}

absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const ImageHeader& header, int divisor) {
  LS_ASSIGN_OR_RETURN(CheckedJpeg checked, CheckSegments(bytes, header));
  LS_ASSIGN_OR_RETURN(cv::Mat samples, DecodeSamples(bytes.substr(0, checked.end), header.size, divisor));
  return StoredImage{samples.channels() == 4 ? ColoursOfInks(samples) : std::move(samples),
                     std::move(checked.metadata)};
}

}  // namespace longshort::models
