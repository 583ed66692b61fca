#include "server/requests/call_metadata.h"

#include <grpc/support/time.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "server/requests/field_error.h"
#include "server/requests/names.h"
#include "server/requests/random_number.h"

namespace longshort {
namespace {

std::string DrawId() { return absl::StrFormat("%016x", RandomNumber()); }

// The first value of the metadata.
std::optional<std::string> Find(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

absl::Status Wrong(const char* key, const std::string& value, const char* allowed) {
  return FieldError(absl::StrCat("metadata ", key), Quoted(value), allowed);
}

absl::Status ReadClient(const grpc::CallbackServerContext& context, std::string* client) {
  std::optional<std::string> value = Find(context, "x-client-id");
  if (!value.has_value()) return absl::OkStatus();
  if (!IsName(*value)) return Wrong("x-client-id", *value, kNameRule);
  *client = *std::move(value);
  return absl::OkStatus();
}

absl::Status ReadPriority(const grpc::CallbackServerContext& context, Priority* priority) {
  const std::optional<std::string> value = Find(context, "x-priority");
  if (!value.has_value()) return absl::OkStatus();
  if (*value == "low") return *priority = Priority::kLow, absl::OkStatus();
  if (*value == "normal") return *priority = Priority::kNormal, absl::OkStatus();
  if (*value == "high") return *priority = Priority::kHigh, absl::OkStatus();
  return Wrong("x-priority", *value, "low, normal or high");
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  // A time point of std::chrono would overflow: clients may say 99,999,999 hours.
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return absl::InfiniteFuture();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return MonotonicNow() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

}  // namespace

CallMetadata ReadCallMetadata(const grpc::CallbackServerContext& context) {
  CallMetadata metadata;
  std::optional<std::string> id = Find(context, "x-request-id");
  metadata.context.id = id.has_value() && IsName(*id) ? *std::move(id) : DrawId();
  metadata.context.deadline = DeadlineOf(context);
  metadata.status = ReadClient(context, &metadata.context.client);
  metadata.status.Update(ReadPriority(context, &metadata.context.priority));
  return metadata;
}

}  // namespace longshort
