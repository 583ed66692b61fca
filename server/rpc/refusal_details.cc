#include "server/rpc/refusal_details.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/rpc/error_details.pb.h"

namespace longshort {
namespace {

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

}  // namespace

std::string RefusalDetails(const absl::Status& status, const Refusal& refusal) {
  rpc::RetryInfo retry;
  absl::Duration rest = refusal.retry_after;
  retry.mutable_retry_delay()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  rpc::ErrorStatus details;
  details.set_code(static_cast<int32_t>(status.code()));
  details.set_message(std::string(status.message()));
  google::protobuf::Any& detail = *details.add_details();
  detail.set_type_url(kRetryInfoUrl);
  retry.SerializeToString(detail.mutable_value());
  return details.SerializeAsString();
}

std::string RetryPushback(const Refusal& refusal) {
  // Clients read an int32, and anything else, or less than 0, as "never".
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(refusal.retry_after, absl::Milliseconds(1)));
  return absl::StrCat(std::clamp<int64_t>(milliseconds, 0, kMost));
}

}  // namespace longshort
