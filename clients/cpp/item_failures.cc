#include "clients/cpp/item_failures.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/utf8_text.h"

namespace longshort {

v1::ItemError MakeItemError(const absl::Status& status) {
  v1::ItemError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(ValidUtf8(std::string(status.message())));
  return error;
}

absl::Status StatusOf(const v1::ItemError& error) {
  return absl::Status(static_cast<absl::StatusCode>(error.code()), error.message());
}

ItemFailures::ItemFailures(Terminal& terminal, bool json, std::string unit)
    : terminal_(terminal), json_(json), unit_(std::move(unit)) {}

void ItemFailures::Count(const absl::Status& failure) {
  if (absl::IsNotFound(failure)) {
    ++unread_;
  } else {
    const ExitCode code = ExitCodeOf(failure);
    ++(code == ExitCode::kRefused ? refused_ : code == ExitCode::kUnavailable ? unavailable_ : other_);
  }
}

void ItemFailures::Add(const std::string& name, const v1::ItemError& error) {
  const absl::Status status = StatusOf(error);
  Count(status);
  absl::string_view message = error.message();
  absl::ConsumePrefix(&message, absl::StrCat(name, ": "));  // it stands beside
  if (json_) {
    v1::ItemError without_name = error;
    without_name.set_message(std::string(message));
    WriteErrorJsonLine(name, without_name, terminal_.output);
  } else {
    terminal_.error << name << ": " << absl::StatusCodeToString(status.code()) << ": " << message << "\n";
  }
}

ExitCode ItemFailures::Summarize(int64_t total) const {
  if (count() == 0) return ExitCode::kOk;
  std::vector<std::string> parts;
  if (refused_ > 0) parts.push_back(absl::StrCat(refused_, " refused"));
  if (unavailable_ > 0) parts.push_back(absl::StrCat(unavailable_, " not taken by a full server"));
  if (other_ > 0) parts.push_back(absl::StrCat(other_, " failed"));
  if (unread_ > 0) parts.push_back(absl::StrCat(unread_, " not readable"));
  terminal_.error << "longshort: of " << total << " " << unit_ << ", " << absl::StrJoin(parts, ", ") << "\n";
  if (refused_ > 0) return ExitCode::kRefused;
  if (unavailable_ > 0) return ExitCode::kUnavailable;
  return other_ > 0 ? ExitCode::kOther : ExitCode::kUsage;
}

}  // namespace longshort
