#include "server/monitoring/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"

namespace longshort::server {
namespace {

constexpr int kHexBits = 4;
constexpr int kNumberBytes = 8;
constexpr size_t kVersionDigits = 2;
constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
constexpr size_t kFlagsDigits = 2;
constexpr uint64_t kSampledFlag = 1;
constexpr uint64_t kRandomFlag = 2;
constexpr uint64_t kForbiddenVersion = 0xFF;

// As many as must be passed on. A longer state is left out as a whole: its members are other systems' to choose from.
constexpr size_t kMaxStateBytes = 512;
constexpr size_t kMaxMembers = 32;
constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxTenantBytes = 241;
constexpr size_t kMaxSystemBytes = 14;
constexpr size_t kMaxValueBytes = 256;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses hexadecimal digits of a number of at most 64 bits; capital ones are invalid.
std::optional<uint64_t> ReadHex(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << kHexBits | static_cast<uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

// Removes a field's digits, and the dash before them, from the beginning of `rest`.
std::optional<std::string_view> TakeField(size_t digits, std::string_view& rest) {
  if (rest.size() < digits + 1 || rest.front() != '-') return std::nullopt;
  const std::string_view field = rest.substr(1, digits);
  rest.remove_prefix(digits + 1);
  return field;
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kVersionDigits) return std::nullopt;
  std::string_view rest = text.substr(kVersionDigits);
  const auto version = ReadHex(text.substr(0, kVersionDigits));
  const auto trace_id = TakeField(kTraceIdDigits, rest);
  const auto span_id = TakeField(kSpanIdDigits, rest);
  const auto flag_digits = TakeField(kFlagsDigits, rest);
  // If a field is missing, the next one reads its place.
  if (!trace_id.has_value() || !span_id.has_value() || !flag_digits.has_value()) return std::nullopt;
  if (!version.has_value() || *version == kForbiddenVersion) return std::nullopt;
  // Later versions may have more fields.
  if (!rest.empty() && (*version == 0 || rest.front() != '-')) return std::nullopt;
  const auto high = ReadHex(trace_id->substr(0, kTraceIdDigits / 2));
  const auto low = ReadHex(trace_id->substr(kTraceIdDigits / 2));
  const auto span = ReadHex(*span_id);
  const auto flags = ReadHex(*flag_digits);
  if (!high.has_value() || !low.has_value() || !span.has_value() || !flags.has_value()) return std::nullopt;
  TraceContext context{.trace_id = {*high, *low},
                       .span_id = {*span},
                       .sampled = (*flags & kSampledFlag) != 0,
                       .random = (*flags & kRandomFlag) != 0};
  if (!context.trace_id.valid() || !context.span_id.valid()) return std::nullopt;
  return context;
}

bool IsKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' || c == '/';
}

bool IsKeyPart(std::string_view part, size_t max) {
  if (part.empty() || part.size() > max) return false;
  const bool begins = (part.front() >= 'a' && part.front() <= 'z') || (part.front() >= '0' && part.front() <= '9');
  return begins && std::all_of(part.begin(), part.end(), IsKeyCharacter);
}

bool IsKey(std::string_view key) {
  const size_t at = key.find('@');
  if (at == std::string_view::npos) return IsKeyPart(key, kMaxKeyBytes);
  return IsKeyPart(key.substr(0, at), kMaxTenantBytes) && IsKeyPart(key.substr(at + 1), kMaxSystemBytes);
}

// A value does not end with a space.
bool IsValue(std::string_view value) {
  if (value.empty() || value.size() > kMaxValueBytes) return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

// Whether it has at most 512 bytes and is a list of at most 32 members of the form `key=value` with distinct keys;
// empty members do not count.
bool IsTracestate(std::string_view text) {
  if (text.size() > kMaxStateBytes) return false;
  std::set<std::string_view> keys;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view member = Trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    if (equals == std::string_view::npos) return false;
    if (!IsKey(member.substr(0, equals)) || !IsValue(member.substr(equals + 1))) return false;
    if (!keys.insert(member.substr(0, equals)).second || keys.size() > kMaxMembers) return false;
  }
  return true;
}

}  // namespace

std::string TraceId::ToHex() const {
  return absl::StrCat(absl::Hex(high, absl::kZeroPad16), absl::Hex(low, absl::kZeroPad16));
}

std::string TraceId::ToBytes() const {
  std::string bytes(2 * kNumberBytes, '\0');
  WriteNumber(high, ByteOrder::kBigEndian, kNumberBytes, bytes.data());
  WriteNumber(low, ByteOrder::kBigEndian, kNumberBytes, bytes.data() + kNumberBytes);
  return bytes;
}

std::string SpanId::ToHex() const { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

std::string SpanId::ToBytes() const {
  std::string bytes(kNumberBytes, '\0');
  WriteNumber(value, ByteOrder::kBigEndian, kNumberBytes, bytes.data());
  return bytes;
}

std::optional<TraceContext> ParseTraceContext(std::string_view traceparent, std::string_view tracestate) {
  std::optional<TraceContext> context = ParseTraceparent(Trim(traceparent));
  const std::string_view state = Trim(tracestate);
  if (context.has_value() && IsTracestate(state)) context->state = std::string(state);
  return context;
}

}  // namespace longshort::server
