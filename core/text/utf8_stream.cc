#include "core/text/utf8_stream.h"

namespace longshort {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::string Utf8Stream::Append(std::string_view bytes) {
  std::string text;
  for (char byte : bytes) AppendByte(byte, text);
  return text;
}

std::string Utf8Stream::Flush() {
  if (held_.empty()) return std::string();
  held_.clear();
  return std::string(kReplacement);
}

void Utf8Stream::AppendByte(char byte, std::string& text) {
  const auto value = static_cast<uint8_t>(byte);
  if (!held_.empty() && (value < lowest_ || value > highest_)) {
    text += kReplacement;  // for what was held; this byte begins anew
    held_.clear();
  }
  if (held_.empty()) {
    if (!Begin(value)) {
      text += kReplacement;
      return;
    }
  } else {
    lowest_ = 0x80;
    highest_ = 0xBF;
  }
  held_ += byte;
  if (held_.size() == length_) {
    text += held_;
    held_.clear();
  }
}

bool Utf8Stream::Begin(uint8_t byte) {
  lowest_ = 0x80;
  highest_ = 0xBF;
  if (byte < 0x80) {
    length_ = 1;
  } else if (byte >= 0xC2 && byte <= 0xDF) {
    length_ = 2;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    length_ = 3;
    if (byte == 0xE0) lowest_ = 0xA0;   // below: overlong
    if (byte == 0xED) highest_ = 0x9F;  // above: surrogates
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    length_ = 4;
    if (byte == 0xF0) lowest_ = 0x90;   // below: overlong
    if (byte == 0xF4) highest_ = 0x8F;  // above: beyond U+10FFFF
  } else {
    return false;
  }
  return true;
}

}  // namespace longshort
