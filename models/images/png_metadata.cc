#include "models/images/png_metadata.h"

#include <zlib.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/utf8.h"
#include "models/images/codecs.h"

namespace longshort::models {
namespace {

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

}  // namespace

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

}  // namespace longshort::models
