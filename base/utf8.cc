#include "base/utf8.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace longshort {

Utf8Decoder::Result Utf8Decoder::Take(uint8_t byte) {
  if (missing_ == 0) return Begin(byte);
  if (byte < lowest_ || byte > highest_) {
    missing_ = 0;
    return Result::kRejected;
  }
  lowest_ = 0x80;
  highest_ = 0xBF;
  code_point_ = code_point_ << 6 | (byte & 0b0011'1111);
  return --missing_ == 0 ? Result::kWhole : Result::kMore;
}

Utf8Decoder::Result Utf8Decoder::Begin(uint8_t byte) {
  lowest_ = 0x80;
  highest_ = 0xBF;
  if (byte < 0x80) {
    code_point_ = byte;
    return Result::kWhole;
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    missing_ = 1;
    code_point_ = byte & 0b0001'1111;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    missing_ = 2;
    code_point_ = byte & 0b0000'1111;
    if (byte == 0xE0) lowest_ = 0xA0;   // below: overlong
    if (byte == 0xED) highest_ = 0x9F;  // above: surrogates
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    missing_ = 3;
    code_point_ = byte & 0b0000'0111;
    if (byte == 0xF0) lowest_ = 0x90;   // below: overlong
    if (byte == 0xF4) highest_ = 0x8F;  // above: beyond U+10FFFF
  } else {
    return Result::kRejected;
  }
  return Result::kMore;
}

std::optional<Utf8Character> FirstUtf8Character(std::string_view text) {
  Utf8Decoder decoder;
  int64_t bytes = 0;
  for (const char byte : text) {
    ++bytes;
    switch (decoder.Take(static_cast<uint8_t>(byte))) {
      case Utf8Decoder::Result::kMore:
        break;
      case Utf8Decoder::Result::kWhole:
        return Utf8Character{decoder.code_point(), bytes};
      case Utf8Decoder::Result::kRejected:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string Utf8Of(char32_t code_point) {
  const auto continuation = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0b0011'1111)); };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {static_cast<char>(0xC0 | code_point >> 6), continuation(0)};
  if (code_point < 0x10000) {
    return {static_cast<char>(0xE0 | code_point >> 12), continuation(6), continuation(0)};
  }
  return {static_cast<char>(0xF0 | code_point >> 18), continuation(12), continuation(6), continuation(0)};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<Utf8Character> character = FirstUtf8Character(text);
    if (!character) return false;
    text.remove_prefix(static_cast<size_t>(character->bytes));
  }
  return true;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMax = 64;
  std::string shown(text.substr(0, kMax));
  // A cut inside a character would leave bytes that are not UTF-8.
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xC0) == 0x80) shown.pop_back();
  return absl::StrCat("\"", absl::Utf8SafeCEscape(shown), shown.size() < text.size() ? "...\"" : "\"");
}

}  // namespace longshort
