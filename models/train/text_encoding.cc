#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/strict_json.h"
#include "base/utf8.h"
#include "models/train/labelled_texts.h"

namespace longshort::models {
namespace {

struct Conversion {
  std::string text;
  size_t converted_bytes = 0;  // of the input; all if it has the encoding
};

bool IsOpen(iconv_t converter) { return reinterpret_cast<intptr_t>(converter) != -1; }

// Returns nullopt if iconv does not know the encoding, also without the hyphens and underscores of Python's latin-1.
std::optional<Conversion> Convert(std::string_view text, const std::string& encoding) {
  iconv_t converter = iconv_open("UTF-8", encoding.c_str());
  if (!IsOpen(converter)) {
    converter = iconv_open("UTF-8", absl::StrReplaceAll(encoding, {{"-", ""}, {"_", ""}}).c_str());
  }
  if (!IsOpen(converter)) return std::nullopt;
  const absl::Cleanup close = [converter] { iconv_close(converter); };
  Conversion conversion;
  std::array<char, 65536> part;
  char* next = const_cast<char*>(text.data());  // iconv does not write to its input
  size_t left = text.size();
  while (left > 0) {
    char* to = part.data();
    size_t room = part.size();
    const bool fails = iconv(converter, &next, &left, &to, &room) == static_cast<size_t>(-1) && errno != E2BIG;
    conversion.text.append(part.data(), part.size() - room);
    if (fails) break;
  }
  conversion.converted_bytes = text.size() - left;
  return conversion;
}

struct FileKind {
  std::string_view beginning;
  const char* description;
};
constexpr FileKind kOtherFiles[] = {
    {"PK\x03\x04", "a zip archive, as workbooks of Excel are; save the table as CSV"},
    {"\xd0\xcf\x11\xe0", "a workbook of Excel; save the table as CSV"},
    {"PAR1", "a Parquet file; save the table as CSV"},
    {"\x1f\x8b", "compressed with gzip; decompress it"},
    {"BZh", "compressed with bzip2; decompress it"},
    {"\xfd\x37zXZ", "compressed with xz; decompress it"},
    {"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it"},
};

// UTF-16 and UTF-32 have a byte order mark. UTF-16 may have a zero byte in most characters of Western languages
// instead.
std::string WideKind(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "utf-32";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return "utf-16";
  size_t zeros[2] = {0, 0};
  const std::string_view beginning = text.substr(0, 1024);
  for (size_t i = 0; i < beginning.size(); ++i) zeros[i % 2] += beginning[i] == '\0' ? 1 : 0;
  if (zeros[0] + zeros[1] <= beginning.size() / 4) return "";
  return zeros[1] > zeros[0] ? "utf-16le" : "utf-16be";
}

size_t FirstThatIsNotUtf8(std::string_view text) {
  size_t place = 0;
  while (const std::optional<Utf8Character> character = FirstUtf8Character(text.substr(place))) {
    place += character->bytes;
  }
  return place;
}

std::string Place(const std::string& name, std::string_view before) {
  return absl::StrCat(name, ":", 1 + std::count(before.begin(), before.end(), '\n'));
}

absl::Status NotUtf8(std::string_view text, const std::string& name) {
  constexpr char kCure[] = ", or convert it to UTF-8";
  for (const FileKind& other : kOtherFiles) {
    if (text.starts_with(other.beginning))
      return absl::InvalidArgumentError(absl::StrCat(name, ": is ", other.description));
  }
  if (const std::string kind = WideKind(text); !kind.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not UTF-8; it is probably ", kind, "; give --encoding=", kind, kCure));
  }
  const size_t place = FirstThatIsNotUtf8(text);
  // The line, up to 20 bytes before and after the byte.
  const size_t begin = std::max(text.rfind('\n', place) + 1, place - std::min<size_t>(place, 20));
  const std::string_view around = text.substr(begin, std::min(text.find('\n', place), place + 20) - begin);
  const std::string what =
      absl::StrCat(Place(name, text.substr(0, place)), ": is not UTF-8: ", QuoteForMessage(around), "; ");
  constexpr char kLikely[] = "windows-1252";
  const std::optional<Conversion> western = Convert(around, kLikely);
  if (!western || western->converted_bytes < around.size()) {
    return absl::InvalidArgumentError(absl::StrCat(what, "give its encoding with --encoding", kCure));
  }
  return absl::InvalidArgumentError(absl::StrCat(what, "as ", kLikely, " it reads ", QuotedLabel(western->text),
                                                 "; if that is right, give --encoding=", kLikely,
                                                 ", else the right encoding", kCure));
}

}  // namespace

absl::StatusOr<std::string> ToUtf8(std::string text, const std::string& encoding, const std::string& name) {
  if (absl::EqualsIgnoreCase(encoding, kUtf8)) {
    if (IsUtf8(text) && WideKind(text).empty()) return text;
    return NotUtf8(text, name);
  }
  std::optional<Conversion> conversion = Convert(text, encoding);
  if (!conversion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--encoding is '", encoding, "'; it must be an encoding of iconv, such as windows-1252 (see iconv --list)"));
  }
  if (conversion->converted_bytes < text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(Place(name, conversion->text), ": byte ",
                                                   conversion->converted_bytes + 1, " of the file is not ", encoding,
                                                   "; give the right encoding with --encoding"));
  }
  return std::move(conversion->text);
}

}  // namespace longshort::models
