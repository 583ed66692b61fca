#include "clients/cpp/token_line.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {

std::string QuoteBytes(const std::string& bytes) {
  // A byte model's token may be one byte of a longer character: shown as it is, it would spoil the terminal's text.
  const bool partial_character = bytes.size() == 1 && static_cast<unsigned char>(bytes.front()) >= 0x80;
  return absl::StrCat("\"", partial_character ? absl::CHexEscape(bytes) : absl::Utf8SafeCHexEscape(bytes), "\"");
}

std::string TokenLine(const v1::TokenLogProbability& token) {
  std::string line = absl::StrFormat("%9.4f %6d  %s\n", token.log_probability(), token.id(), QuoteBytes(token.raw()));
  for (const v1::TokenLogProbability& alternative : token.alternatives()) {
    absl::StrAppend(&line, "    ", TokenLine(alternative));
  }
  return line;
}

}  // namespace longshort
