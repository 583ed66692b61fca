#include "server/rpc/refusal_details.h"

#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace longshort {

std::string RefusalDetails(const absl::Status& status, const Refusal& refusal) {
  google::rpc::RetryInfo retry;
  absl::Duration rest = refusal.retry_after;
  retry.mutable_retry_delay()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  google::rpc::Status details;
  details.set_code(static_cast<int32_t>(status.code()));
  details.set_message(std::string(status.message()));
  details.add_details()->PackFrom(retry);
  return details.SerializeAsString();
}

}  // namespace longshort
