#include "server/handlers/utf8_stream.h"

namespace longshort::server {
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
  decoder_.Reset();
  return std::string(kReplacement);
}

void Utf8Stream::AppendByte(char byte, std::string& text) {
  Utf8Decoder::Result result = decoder_.Take(static_cast<uint8_t>(byte));
  if (result == Utf8Decoder::Result::kRejected && !held_.empty()) {
    text += kReplacement;  // for the held bytes; this byte begins a new character
    held_.clear();
    result = decoder_.Take(static_cast<uint8_t>(byte));
  }
  if (result == Utf8Decoder::Result::kRejected) {
    text += kReplacement;
    return;
  }
  held_ += byte;
  if (result == Utf8Decoder::Result::kMore) return;
  text += held_;
  held_.clear();
}

}  // namespace longshort::server
