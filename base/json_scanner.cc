#include "base/json_scanner.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace longshort {
namespace {

// The bytes that stand for themselves in a string: ASCII without controls, quotes and backslashes.
constexpr std::array<bool, 256> PlainBytes() {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = PlainBytes();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::Status JsonScanner::WrongKind(std::string_view wanted) const {
  return Wrong(absl::StrCat("expected ", std::string(wanted), ", found ", Found()));
}

const char* JsonScanner::Found() const {
  if (next_ == end_) return "the end of the text";
  switch (*next_) {
    case '{':
      return "an object";
    case '[':
      return "a list";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return *next_ == '-' || IsDigit(*next_) ? "a number" : "something else";
  }
}

void JsonScanner::SkipSpace() {
  while (next_ != end_ && (*next_ == ' ' || *next_ == '\n' || *next_ == '\r' || *next_ == '\t')) ++next_;
}

bool JsonScanner::Take(char wanted) {
  SkipSpace();
  if (next_ == end_ || *next_ != wanted) return false;
  ++next_;
  return true;
}

bool JsonScanner::TakeWord(std::string_view word) {
  SkipSpace();
  if (!std::string_view(next_, static_cast<size_t>(end_ - next_)).starts_with(word)) return false;
  next_ += word.size();
  return true;
}

absl::Status JsonScanner::ReadNumber(std::string_view wanted, std::string& text) {
  if (NextIs('"')) return ReadString(text);
  std::string_view number;
  LS_RETURN_IF_ERROR(ReadDigits(wanted, number));
  LS_RETURN_IF_ERROR(meter_.MakeRoom(text = "", number.size()));
  text = number;
  return absl::OkStatus();
}

absl::Status JsonScanner::ReadDigits(std::string_view wanted, std::string_view& digits) {
  SkipSpace();
  const char* end = next_;
  while (end != end_ && (IsDigit(*end) || (*end != '\0' && std::strchr("+-.eE", *end) != nullptr))) ++end;
  digits = {next_, static_cast<size_t>(end - next_)};
  if (digits.empty()) return WrongKind(wanted);
  constexpr size_t kShown = 64;
  if (!IsNumber(digits)) return Wrong(absl::StrCat("\"", std::string(digits.substr(0, kShown)), "\" is not a number"));
  next_ = end;
  return absl::OkStatus();
}

absl::Status JsonScanner::ReadNumber(JsonNumber& number) {
  std::string_view digits;
  LS_RETURN_IF_ERROR(ReadDigits("a value", digits));
  const char *const begin = digits.data(), *const end = begin + digits.size();
  const auto read_whole = [&](auto value) {
    const auto parsed = std::from_chars(begin, end, value);
    number = value;
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
  if (digits.front() == '-' ? read_whole(int64_t{0}) : read_whole(uint64_t{0})) return absl::OkStatus();
  double value = 0;
  const auto parsed = absl::from_chars(begin, end, value);
  number = value;
  // The error is also given for numbers that are too small, for which 0 is near enough.
  if (parsed.ec != std::errc::result_out_of_range || std::abs(value) < 1) return absl::OkStatus();
  next_ = begin;
  return Wrong("a number that is out of range");
}

absl::Status JsonScanner::SkipNested() {
  int64_t depth = 0;
  bool in_string = false;
  for (; next_ != end_; ++next_) {
    const char c = *next_;
    if (in_string) {
      if (c == '\\' && next_ + 1 != end_) ++next_;  // what it escapes
      if (c != '"') continue;
      in_string = false;
      if (depth == 0) return ++next_, absl::OkStatus();
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
      if (depth == 0) return ++next_, absl::OkStatus();
    }
  }
  return WrongKind("the end of the value");
}

bool JsonScanner::IsNumber(std::string_view text) {
  size_t at = 0;
  const auto take_digits = [&] {
    const size_t first = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - first;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const bool begins_with_zero = at < text.size() && text[at] == '0';
  const size_t digits = take_digits();
  if (digits == 0 || (begins_with_zero && digits > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (take_digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (take_digits() == 0) return false;
  }
  return at == text.size();
}

absl::Status JsonScanner::ReadString(std::string& text) {
  if (!NextIs('"')) return WrongKind("a string");
  ++next_;
  text.clear();
  const void* quote = std::memchr(next_, '"', static_cast<size_t>(end_ - next_));
  if (quote != nullptr) {
    LS_RETURN_IF_ERROR(meter_.MakeRoom(text, static_cast<size_t>(static_cast<const char*>(quote) - next_)));
  }
  while (true) {
    const char* run = next_;
    LS_RETURN_IF_ERROR(SkipPlain());
    LS_RETURN_IF_ERROR(meter_.MakeRoom(text, static_cast<size_t>(next_ - run)));
    text.append(run, next_);
    if (next_ == end_) return Wrong("the string has no end");
    if (*next_ == '"') return ++next_, absl::OkStatus();
    if (*next_ != '\\') return Wrong("a string has a control character, which JSON writes as an escape such as \\t");
    constexpr size_t kLongestCharacter = 4;
    LS_RETURN_IF_ERROR(meter_.MakeRoom(text, kLongestCharacter));
    LS_RETURN_IF_ERROR(ReadEscape(text));
  }
}

absl::Status JsonScanner::SkipPlain() {
  while (next_ != end_) {
    const auto byte = static_cast<unsigned char>(*next_);
    if (kPlain[byte]) {
      ++next_;
    } else if (byte < 0x80) {
      break;
    } else {
      const auto character = FirstUtf8Character({next_, static_cast<size_t>(end_ - next_)});
      if (!character.has_value()) return Wrong("a string is not valid UTF-8");
      next_ += character->bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status JsonScanner::ReadEscape(std::string& text) {
  constexpr char kNames[] = "\"\\/bfnrt", kMeanings[] = "\"\\/\b\f\n\r\t";
  const char name = next_ + 1 < end_ ? next_[1] : '\0';
  if (const char* found = name == '\0' ? nullptr : std::strchr(kNames, name); found != nullptr) {
    text += kMeanings[found - kNames];
    next_ += 2;
    return absl::OkStatus();
  }
  if (name != 'u') return Wrong("a string has an unknown escape");
  char32_t character = 0;
  LS_RETURN_IF_ERROR(ReadCodeUnit(character));
  if (character >= 0xD800 && character < 0xDC00 && end_ - next_ >= 2 && next_[0] == '\\' && next_[1] == 'u') {
    char32_t low = 0;
    LS_RETURN_IF_ERROR(ReadCodeUnit(low));
    if (low >= 0xDC00 && low < 0xE000) character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
  }
  if (character >= 0xD800 && character < 0xE000) return Wrong("a string has half of a surrogate pair");
  text += Utf8Of(character);
  return absl::OkStatus();
}

absl::Status JsonScanner::ReadCodeUnit(char32_t& unit) {
  constexpr int kLength = 6, kHexadecimal = 16;
  uint32_t value = 0;
  const bool is_long = end_ - next_ >= kLength;
  if (!is_long || std::from_chars(next_ + 2, next_ + kLength, value, kHexadecimal).ptr != next_ + kLength) {
    return Wrong("\\u needs four hexadecimal digits");
  }
  next_ += kLength;
  unit = value;
  return absl::OkStatus();
}

}  // namespace longshort
