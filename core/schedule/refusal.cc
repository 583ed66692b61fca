#include "core/schedule/refusal.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace longshort {
namespace {

constexpr char kTypeUrl[] = "type.longshort/core.Refusal";

}  // namespace

void SetRefusal(absl::Status& status, const Refusal& refusal) {
  status.SetPayload(kTypeUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(refusal.retry_after), " ", refusal.queue_depth)));
}

std::optional<Refusal> GetRefusal(const absl::Status& status) {
  const auto payload = status.GetPayload(kTypeUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::pair<std::string, std::string> fields = absl::StrSplit(std::string(*payload), ' ');
  int64_t nanoseconds = 0;
  Refusal refusal;
  if (!absl::SimpleAtoi(fields.first, &nanoseconds)) return std::nullopt;
  if (!absl::SimpleAtoi(fields.second, &refusal.queue_depth)) return std::nullopt;
  refusal.retry_after = absl::Nanoseconds(nanoseconds);
  return refusal;
}

}  // namespace longshort
