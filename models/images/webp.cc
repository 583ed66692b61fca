#include <webp/decode.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/codecs.h"

namespace longshort::models {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kFirstChunk = 12;  // after "RIFF", the length and "WEBP"
constexpr uint64_t kChunkHeader = 8;  // type, length
constexpr uint64_t kFrameHeader = 16;
constexpr uint8_t kAnimationFlag = 0x02, kXmpFlag = 0x04, kExifFlag = 0x08, kAlphaFlag = 0x10;

struct Chunk {
  std::string_view type;
  std::string_view content;
  std::string_view whole;  // with type, length and padding
};

// The chunk at `at`. Errors: INVALID_ARGUMENT if it is truncated.
absl::StatusOr<Chunk> ReadChunk(std::string_view bytes, uint64_t at) {
  const ByteReader reader(bytes, ByteOrder::kLittleEndian);
  Chunk chunk;
  LS_ASSIGN_OR_RETURN(chunk.type, reader.Slice(at, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t length, reader.Number(at + 4, 4));
  LS_ASSIGN_OR_RETURN(chunk.content, reader.Slice(at + kChunkHeader, length));
  chunk.whole = bytes.substr(at, kChunkHeader + length + length % 2);
  return chunk;
}

// The first chunk of that type from `at` on, or nullopt.
std::optional<Chunk> FindChunk(std::string_view bytes, uint64_t at, std::string_view type) {
  while (true) {
    const auto chunk = ReadChunk(bytes, at);
    if (!chunk.ok()) return std::nullopt;
    if (chunk->type == type) return *chunk;
    at += chunk->whole.size();
  }
}

// Width minus 1, then height minus 1, of three bytes each.
absl::StatusOr<ImageSize> SizeLessOne(const ByteReader& reader, uint64_t at) {
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(at, 3));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(at + 3, 3));
  return ImageSize{static_cast<int64_t>(height) + 1, static_cast<int64_t>(width) + 1};
}

// RFC 6386, section 9.1: width and height, 14 bits each, after the frame tag and the start code.
absl::StatusOr<ImageSize> LossySize(const ByteReader& reader) {
  LS_ASSIGN_OR_RETURN(const std::string_view start_code, reader.Slice(3, 3));
  if (start_code != "\x9D\x01\x2A"sv) return absl::InvalidArgumentError("the WebP is broken: no start code");
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(6, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(8, 2));
  return ImageSize{static_cast<int64_t>(height & 0x3FFF), static_cast<int64_t>(width & 0x3FFF)};
}

// RFC 9649, section 3.4: a signature, then width minus 1 and height minus 1, 14 bits each.
absl::StatusOr<ImageSize> LosslessSize(const ByteReader& reader) {
  LS_ASSIGN_OR_RETURN(const uint64_t signature, reader.Number(0, 1));
  if (signature != 0x2F) return absl::InvalidArgumentError("the WebP is broken: no lossless signature");
  LS_ASSIGN_OR_RETURN(const uint64_t bits, reader.Number(1, 4));
  return ImageSize{static_cast<int64_t>(bits >> 14 & 0x3FFF) + 1, static_cast<int64_t>(bits & 0x3FFF) + 1};
}

absl::StatusOr<ImageSize> SizeOfCanvas(std::string_view bytes) {
  const ByteReader container(bytes, ByteOrder::kLittleEndian);
  LS_ASSIGN_OR_RETURN(const std::string_view type, container.Slice(kFirstChunk, 4));
  const ByteReader content(bytes.substr(std::min<size_t>(bytes.size(), kFirstChunk + kChunkHeader)),
                           ByteOrder::kLittleEndian);
  if (type == "VP8 ") return LossySize(content);
  if (type == "VP8L") return LosslessSize(content);
  if (type == "VP8X") return SizeLessOne(content, 4);
  return absl::InvalidArgumentError("the WebP is broken: its first chunk is not VP8, VP8L or VP8X");
}

void AppendChunkHeader(std::string_view type, uint64_t length, std::string& file) {
  file.append(type);
  file.resize(file.size() + 4);
  WriteNumber(length, ByteOrder::kLittleEndian, 4, file.data() + file.size() - 4);
}

// Puts the chunks of a frame (ALPH, VP8 or VP8L) into a separate file, whose header determines the size of the decoded
// image. Errors: INVALID_ARGUMENT if the first chunk is another one, or if its size is not the frame's.
absl::StatusOr<std::string> FileOfFrame(std::string_view chunks, const ImageSize& size) {
  const std::string_view first = chunks.substr(0, 4);
  const bool alpha = first == "ALPH";
  if (!alpha && first != "VP8 " && first != "VP8L") {
    return absl::InvalidArgumentError("the WebP is broken: its first frame does not begin with ALPH, VP8 or VP8L");
  }
  constexpr uint64_t kExtendedLength = 10;
  std::string file;
  AppendChunkHeader("RIFF", 4 + chunks.size() + (alpha ? kChunkHeader + kExtendedLength : 0), file);
  file.append("WEBP");
  if (alpha) {
    AppendChunkHeader("VP8X", kExtendedLength, file);
    std::string extended(kExtendedLength, '\0');
    extended[0] = static_cast<char>(kAlphaFlag);
    WriteNumber(static_cast<uint64_t>(size.width - 1), ByteOrder::kLittleEndian, 3, extended.data() + 4);
    WriteNumber(static_cast<uint64_t>(size.height - 1), ByteOrder::kLittleEndian, 3, extended.data() + 7);
    file.append(extended);
  }
  file.append(chunks);
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadWebpHeader(file));
  const ImageSize inside = header.size;
  if (inside == size) return file;
  return absl::InvalidArgumentError(
      absl::StrFormat("the WebP is broken: its first frame is %d x %d pixels and its image %d x %d", size.width,
                      size.height, inside.width, inside.height));
}

// The first chunks EXIF and XMP. Only those whose flags the first chunk, VP8X, sets are part of the image.
ImageMetadata ReadMetadata(std::string_view bytes) {
  const auto first = ReadChunk(bytes, kFirstChunk);
  if (!first.ok() || first->type != "VP8X" || first->content.empty()) return {};
  const auto content = [&](uint8_t flag, std::string_view type) {
    const auto chunk = (first->content[0] & flag) == 0 ? std::nullopt : FindChunk(bytes, kFirstChunk, type);
    return chunk.has_value() ? std::string(chunk->content) : std::string();
  };
  return {.exif = content(kExifFlag, "EXIF"), .xmp = content(kXmpFlag, "XMP ")};
}

// Decodes a file that is not animated and has that size.
absl::StatusOr<cv::Mat> DecodePixels(std::string_view file, const ImageSize& size, int divisor) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return absl::InternalError("libwebp has another version than its headers");
  VP8StatusCode status = WebPGetFeatures(bytes, file.size(), &config.input);
  if (status == VP8_STATUS_OK && (config.input.width != size.width || config.input.height != size.height)) {
    return absl::InvalidArgumentError("the image is broken: its data contradict its header");
  }
  cv::Mat pixels;
  if (status == VP8_STATUS_OK) {
    pixels.create(static_cast<int>(DividedSide(size.height, divisor)),
                  static_cast<int>(DividedSide(size.width, divisor)), CV_8UC3);
    config.options.use_scaling = divisor > 1 ? 1 : 0;
    config.options.scaled_width = pixels.cols;
    config.options.scaled_height = pixels.rows;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {
        .rgba = pixels.data, .stride = static_cast<int>(pixels.step[0]), .size = pixels.total() * pixels.elemSize()};
    status = WebPDecode(bytes, file.size(), &config);
  }
  if (status == VP8_STATUS_OK) return pixels;
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("not enough memory to decode an image of %d x %d pixels", size.width, size.height));
  }
  return absl::InvalidArgumentError("the WebP image cannot be decoded: its data are broken or end early");
}

// Decodes the frame on a black canvas.
absl::StatusOr<cv::Mat> DecodeFrame(const WebpFrame& frame, const ImageSize& canvas) {
  LS_ASSIGN_OR_RETURN(const cv::Mat pixels, DecodePixels(frame.file, frame.size, 1));
  cv::Mat whole = cv::Mat::zeros(static_cast<int>(canvas.height), static_cast<int>(canvas.width), CV_8UC3);
  const cv::Rect place(static_cast<int>(frame.left), static_cast<int>(frame.top), pixels.cols, pixels.rows);
  pixels.copyTo(whole(place));
  return whole;
}

}  // namespace

absl::StatusOr<ImageHeader> ReadWebpHeader(std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const ImageSize size, SizeOfCanvas(bytes));
  return ImageHeader{.format = ImageFormat::kWebp, .size = size};
}

absl::StatusOr<std::optional<WebpFrame>> FirstWebpFrame(std::string_view bytes, const ImageSize& canvas) {
  LS_ASSIGN_OR_RETURN(const Chunk first, ReadChunk(bytes, kFirstChunk));
  const bool animated = first.type == "VP8X" && !first.content.empty() && (first.content[0] & kAnimationFlag) != 0;
  if (!animated) return std::nullopt;
  const std::optional<Chunk> chunk = FindChunk(bytes, kFirstChunk, "ANMF");
  if (!chunk.has_value()) return absl::InvalidArgumentError("the image is truncated: the WebP has no complete frame");

  const ByteReader reader(chunk->content, ByteOrder::kLittleEndian);
  WebpFrame frame;
  LS_ASSIGN_OR_RETURN(const uint64_t half_left, reader.Number(0, 3));
  LS_ASSIGN_OR_RETURN(const uint64_t half_top, reader.Number(3, 3));
  LS_ASSIGN_OR_RETURN(frame.size, SizeLessOne(reader, 6));
  frame.left = 2 * static_cast<int64_t>(half_left);
  frame.top = 2 * static_cast<int64_t>(half_top);
  if (frame.left + frame.size.width > canvas.width || frame.top + frame.size.height > canvas.height) {
    return absl::InvalidArgumentError("the WebP is broken: its first frame exceeds the canvas");
  }
  LS_RETURN_IF_ERROR(reader.Slice(0, kFrameHeader).status());
  LS_ASSIGN_OR_RETURN(frame.file, FileOfFrame(chunk->content.substr(kFrameHeader), frame.size));
  return frame;
}

absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const ImageHeader& header, int divisor) {
  LS_ASSIGN_OR_RETURN(const std::optional<WebpFrame> frame, FirstWebpFrame(bytes, header.size));
  LS_ASSIGN_OR_RETURN(cv::Mat pixels,
                      frame.has_value() ? DecodeFrame(*frame, header.size) : DecodePixels(bytes, header.size, divisor));
  return StoredImage{std::move(pixels), ReadMetadata(bytes)};
}

}  // namespace longshort::models
