#include "base/option_values.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace longshort {
namespace {

absl::Status OkIf(bool was_read, absl::string_view rule) {
  return was_read ? absl::OkStatus() : absl::InvalidArgumentError(rule);
}

}  // namespace

absl::Status ReadOptionValue(const std::string& text, std::string* value) {
  *value = text;
  return absl::OkStatus();
}
absl::Status ReadOptionValue(const std::string& text, bool* value) {
  return OkIf(absl::SimpleAtob(text, value), "must be true or false");
}
absl::Status ReadOptionValue(const std::string& text, int32_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [-2^31, 2^31)");
}
absl::Status ReadOptionValue(const std::string& text, int64_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [-2^63, 2^63)");
}
absl::Status ReadOptionValue(const std::string& text, uint64_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [0, 2^64)");
}
absl::Status ReadOptionValue(const std::string& text, double* value) {
  return OkIf(absl::SimpleAtod(text, value), "must be a number");
}
absl::Status ReadOptionValue(const std::string& text, absl::Duration* value) {
  return OkIf(absl::ParseDuration(text, value), "must be a duration with its unit, such as 500ms, 30s or 2m");
}

std::string OptionValueText(const std::string& value) { return value; }
std::string OptionValueText(int32_t value) { return absl::StrCat(value); }
std::string OptionValueText(int64_t value) { return absl::StrCat(value); }
std::string OptionValueText(uint64_t value) { return absl::StrCat(value); }
std::string OptionValueText(double value) { return absl::StrCat(value); }
std::string OptionValueText(absl::Duration value) { return absl::FormatDuration(value); }

}  // namespace longshort
