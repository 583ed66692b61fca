// PNG: the metadata of its chunks, and its pixels by libpng.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "models/images/codecs.h"

namespace longshort::models {
namespace {

// The chunks of a PNG that can say how the image is to be turned.
//
// Collects the chunks of one file, in the file's order: eXIf, and the texts (tEXt, zTXt, iTXt) of ImageMagick's "Raw
// profile type exif", of XMP, and of "exif". The last one of a kind counts, as for Pillow. An iTXt that is not UTF-8 or
// cannot be decompressed does not count, except for XMP if there is no other. Chunks after the first frame of an
// animation are not part of that frame. Keeps views of the file, which must outlive this object.
class PngMetadata final {
 public:
  void Add(std::string_view type, std::string_view content);

  // Decompresses at most kMaxTextBytes of a text; a longer one counts as empty. Of a kind, looks at the last kMaxTexts.
  ImageMetadata Read() const;

  static constexpr size_t kMaxTextBytes = 1 << 20;  // as Pillow
  static constexpr size_t kMaxTexts = 16;

 private:
  struct Text {
    std::string_view content;
    bool compressed = false;
    // iTXt. Its language and translated keyword are UTF-8, too, if it is valid.
    bool international = false;
    bool has_valid_names = true;
  };
  // The last texts of one kind.
  struct Texts {
    void Add(const Text& text);
    // The last valid text.
    std::string Valid() const;
    // The last international text that can be decompressed.
    std::string International() const;

    std::deque<Text> last;
  };

  void AddText(std::string_view keyword, const Text& text);
  // Returns nullopt for what cannot be decompressed.
  static std::optional<std::string> Decompressed(const Text& text);

  std::string_view exif_;
  Texts raw_profiles_;
  Texts xmps_;
  bool pixels_began_ = false;
  bool animated_ = false;
  bool first_frame_ended_ = false;
};

// Splits off what precedes the first `separator`. Returns nullopt if there is none.
std::optional<std::string_view> SplitOff(std::string_view& rest, char separator) {
  const size_t length = rest.find(separator);
  if (length == std::string_view::npos) return std::nullopt;
  const std::string_view first = rest.substr(0, length);
  rest.remove_prefix(length + 1);
  return first;
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(digit));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The bytes of a "Raw profile": an empty line, the profile's name and its length, then lines of hexadecimal digits.
std::string BytesOfRawProfile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    if (!SplitOff(text, '\n').has_value()) return {};
  }
  std::string bytes;
  int high = -1;
  for (const char character : text) {
    if (absl::ascii_isspace(static_cast<unsigned char>(character))) continue;
    const int digit = HexDigit(character);
    if (digit < 0) break;
    if (high >= 0) bytes.push_back(static_cast<char>(high << 4 | digit));
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

void PngMetadata::Add(std::string_view type, std::string_view content) {
  if (type == "IDAT") pixels_began_ = true;
  if (type == "acTL" && !pixels_began_) {
    const absl::StatusOr<uint64_t> frames = ByteReader(content, ByteOrder::kBigEndian).Number(0, 4);
    animated_ = frames.ok() && *frames > 1;
  }
  if (type == "fcTL" && animated_ && pixels_began_) first_frame_ended_ = true;
  if (first_frame_ended_) return;
  if (type == "eXIf") exif_ = content;
  if (type != "tEXt" && type != "zTXt" && type != "iTXt") return;

  const std::optional<std::string_view> keyword = SplitOff(content, '\0');
  if (!keyword.has_value()) return;
  Text text{content};
  if (type != "tEXt") {
    // zTXt: the method. iTXt: whether the text is compressed, the method, the language, the translated keyword.
    const size_t before = type == "zTXt" ? 1 : 2;
    if (content.size() < before) return;
    text = {content.substr(before), type == "zTXt" || content[0] != 0};
    if (text.compressed && content[before - 1] != 0) return;
    if (type == "iTXt") {
      const std::optional<std::string_view> language = SplitOff(text.content, '\0');
      const std::optional<std::string_view> translated = SplitOff(text.content, '\0');
      if (!language.has_value() || !translated.has_value()) return;
      text.international = true;
      text.has_valid_names = IsUtf8(*language) && IsUtf8(*translated);
    }
  }
  AddText(*keyword, text);
}

void PngMetadata::AddText(std::string_view keyword, const Text& text) {
  if (keyword == "exif" && !text.compressed) exif_ = text.content;
  if (keyword == "Raw profile type exif") raw_profiles_.Add(text);
  if (keyword == "XML:com.adobe.xmp") xmps_.Add(text);
}

void PngMetadata::Texts::Add(const Text& text) {
  last.push_back(text);
  if (last.size() > kMaxTexts) last.pop_front();
}

std::string PngMetadata::Texts::Valid() const {
  for (auto text = last.rbegin(); text != last.rend(); ++text) {
    std::optional<std::string> content = Decompressed(*text);
    if (!text->international) return content.value_or("");
    if (content.has_value() && text->has_valid_names && IsUtf8(*content)) return *std::move(content);
  }
  return {};
}

std::string PngMetadata::Texts::International() const {
  for (auto text = last.rbegin(); text != last.rend(); ++text) {
    if (!text->international) continue;
    if (std::optional<std::string> content = Decompressed(*text); content.has_value()) return *std::move(content);
  }
  return {};
}

std::optional<std::string> PngMetadata::Decompressed(const Text& text) {
  if (!text.compressed) return std::string(text.content);
  std::string bytes(kMaxTextBytes, '\0');
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.content.data()));
  stream.avail_in = static_cast<uInt>(text.content.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  bytes.resize(bytes.size() - stream.avail_out);
  const bool whole = result == Z_STREAM_END || ((result == Z_OK || result == Z_BUF_ERROR) && stream.avail_out > 0);
  inflateEnd(&stream);
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

ImageMetadata PngMetadata::Read() const {
  std::string xmp = xmps_.Valid();
  if (xmp.empty()) xmp = xmps_.International();
  return {.exif = exif_.empty() ? BytesOfRawProfile(raw_profiles_.Valid()) : std::string(exif_), .xmp = std::move(xmp)};
}

constexpr uint64_t kSignatureLength = 8;
// Bytes around the content of a chunk: its length and type before it, its checksum after it.
constexpr uint64_t kBeforeContent = 8, kAfterContent = 4;

bool IsOfPixels(std::string_view type) {
  constexpr std::array<std::string_view, 5> kTypes = {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// The input of libpng: the signature and the chunks that the pixels need.
struct PngData {
  std::vector<std::string_view> parts;  // in the file's order; adjacent chunks are one part
  PngMetadata metadata;
};

absl::StatusOr<PngData> ReadChunks(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kBigEndian);
  PngData data;
  uint64_t part = 0;  // start of the current part
  for (uint64_t at = kSignatureLength;;) {
    LS_ASSIGN_OR_RETURN(const uint64_t length, reader.Number(at, 4));
    LS_ASSIGN_OR_RETURN(const std::string_view chunk, reader.Slice(at, kBeforeContent + length + kAfterContent));
    const std::string_view type = chunk.substr(4, 4);
    const uint64_t end = at + chunk.size();
    data.metadata.Add(type, chunk.substr(kBeforeContent, length));
    if (!IsOfPixels(type)) {
      if (part < at) data.parts.push_back(bytes.substr(part, at - part));
      part = end;
    }
    if (type == "IEND") {
      data.parts.push_back(bytes.substr(part, end - part));
      return data;
    }
    at = end;
  }
}

// The state of libpng's callbacks. A callback reports an error with a longjmp to the caller of libpng, so no object in
// between may have a destructor.
struct PngReading {
  cv::Mat* pixels = nullptr;
  bool complete = false;
  bool without_memory = false;
  std::array<char, 128> error = {};
};

PngReading& ReadingOf(png_structp png) { return *static_cast<PngReading*>(png_get_progressive_ptr(png)); }

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto& reading = *static_cast<PngReading*>(png_get_error_ptr(png));
  std::snprintf(reading.error.data(), reading.error.size(), "%s", message);
  png_longjmp(png, 1);
}

void OnWarning(png_structp /*png*/, png_const_charp /*message*/) {}

bool MakePixels(cv::Mat& pixels, png_structp png, png_infop info) {
  try {
    const int depth = png_get_bit_depth(png, info) == 16 ? CV_16U : CV_8U;
    pixels.create(static_cast<int>(png_get_image_height(png, info)), static_cast<int>(png_get_image_width(png, info)),
                  CV_MAKETYPE(depth, png_get_channels(png, info)));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Called after the header: sets the conversions of the rows.
void OnHeader(png_structp png, png_infop info) {
  const bool grey = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0;
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (grey && png_get_bit_depth(png, info) < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_bit_depth(png, info) == 16 && std::endian::native == std::endian::little) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);

  PngReading& reading = ReadingOf(png);
  reading.without_memory = !MakePixels(*reading.pixels, png, info);
  if (reading.without_memory) png_error(png, "no memory");
  if (png_get_rowbytes(png, info) != reading.pixels->cols * reading.pixels->elemSize()) {
    png_error(png, "rows of another length");
  }
}

// `row` is null if a pass of an interlaced image does not change the row.
void OnRow(png_structp png, png_bytep row, png_uint_32 y, int /*pass*/) {
  if (row != nullptr) png_progressive_combine_row(png, ReadingOf(png).pixels->ptr(static_cast<int>(y)), row);
}

// Whether the last row was read; in an interlaced image, that of the last of seven passes.
bool HasAllRows(png_structp png, png_infop info) {
  if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE) return png_get_current_pass_number(png) >= 7;
  return png_get_current_row_number(png) >= png_get_image_height(png, info);
}

// libpng reports an error with a longjmp to this function, so no object in it may have a destructor. libpng's parameter
// is not const, but libpng does not change the bytes.
void Read(png_structp png, png_infop info, absl::Span<const std::string_view> parts, PngReading& reading) {
  if (setjmp(png_jmpbuf(png)) != 0) return;
  png_set_progressive_read_fn(png, &reading, OnHeader, OnRow, nullptr);
  for (const std::string_view& part : parts) {
    png_process_data(png, info, reinterpret_cast<png_bytep>(const_cast<char*>(part.data())), part.size());
  }
  reading.complete = HasAllRows(png, info);
}

absl::Status NoMemory(const ImageSize& size) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("not enough memory to decode an image of %d x %d pixels", size.width, size.height));
}

absl::StatusOr<cv::Mat> DecodeParts(absl::Span<const std::string_view> parts, const ImageSize& size) {
  cv::Mat pixels;
  PngReading reading{.pixels = &pixels};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return NoMemory(size);
  }
  Read(png, info, parts, reading);
  png_destroy_read_struct(&png, &info, nullptr);
  if (reading.without_memory) return NoMemory(size);
  if (reading.error[0] != '\0') {
    return absl::InvalidArgumentError(absl::StrCat("the image cannot be decoded: ", reading.error.data()));
  }
  if (!reading.complete || pixels.rows != size.height || pixels.cols != size.width) {
    return absl::InvalidArgumentError("the image cannot be decoded: its data end before its last row");
  }
  return pixels;
}

}  // namespace

absl::StatusOr<ImageHeader> ReadPngHeader(std::string_view bytes) {
  const ByteReader reader(bytes, ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const std::string_view type, reader.Slice(kSignatureLength + 4, 4));
  if (type != "IHDR") return absl::InvalidArgumentError("the PNG is broken: it does not begin with IHDR");
  LS_ASSIGN_OR_RETURN(const uint64_t width, reader.Number(kSignatureLength + kBeforeContent, 4));
  LS_ASSIGN_OR_RETURN(const uint64_t height, reader.Number(kSignatureLength + kBeforeContent + 4, 4));
  return ImageHeader{.format = ImageFormat::kPng, .size = {static_cast<int64_t>(height), static_cast<int64_t>(width)}};
}

absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const ImageHeader& header) {
  LS_ASSIGN_OR_RETURN(const PngData data, ReadChunks(bytes));
  LS_ASSIGN_OR_RETURN(cv::Mat pixels, DecodeParts(data.parts, header.size));
  return StoredImage{std::move(pixels), data.metadata.Read()};
}

}  // namespace longshort::models
