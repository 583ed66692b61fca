#include "server/call/call_metadata.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random_number.h"
#include "server/call/error_details.pb.h"
#include "server/calls/call_names.h"
#include "server/monitoring/trace_context.h"

namespace longshort::server {
namespace {

std::string DrawId() { return absl::StrFormat("%016x", RandomNumber()); }

absl::Status Wrong(const char* key, const std::string& value, const char* allowed) {
  return FieldError(absl::StrCat("metadata ", key), Quoted(value), allowed);
}

absl::Status ReadClient(const FindMetadata& find, std::string* client) {
  std::optional<std::string> value = find("x-client-id");
  if (!value.has_value()) return absl::OkStatus();
  if (!IsName(*value)) return Wrong("x-client-id", *value, kNameRule);
  *client = *std::move(value);
  return absl::OkStatus();
}

absl::Status ReadPriority(const FindMetadata& find, core::Priority* priority) {
  const std::optional<std::string> value = find("x-priority");
  if (!value.has_value()) return absl::OkStatus();
  if (*value == "low") return *priority = core::Priority::kLow, absl::OkStatus();
  if (*value == "normal") return *priority = core::Priority::kNormal, absl::OkStatus();
  if (*value == "high") return *priority = core::Priority::kHigh, absl::OkStatus();
  return Wrong("x-priority", *value, "low, normal or high");
}

// Two traceparents count as none: joined by a comma they do not parse.
std::optional<TraceContext> ReadTraceContext(const FindMetadata& find) {
  const std::optional<std::string> parent = find("traceparent");
  if (!parent.has_value()) return std::nullopt;
  return ParseTraceContext(*parent, find("tracestate").value_or(""));
}

}  // namespace

std::string SerializeRetryInfo(absl::Duration retry_after) {
  rpc::RetryInfo retry;
  absl::Duration rest = retry_after;
  retry.mutable_retry_delay()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return retry.SerializeAsString();
}

CallOrigin ReadOrigin(const FindMetadata& find, absl::Time deadline) {
  CallOrigin origin;
  std::optional<std::string> id = find(kIdKey);
  origin.context.id = id.has_value() && IsName(*id) ? *std::move(id) : DrawId();
  origin.context.deadline = deadline;
  origin.credentials.authorization = find("authorization");
  origin.trace.parent = ReadTraceContext(find);
  origin.status = ReadClient(find, &origin.context.client);
  origin.status.Update(ReadPriority(find, &origin.context.priority));
  return origin;
}

const char* OutcomeName(core::LoadOutcome outcome) {
  switch (outcome) {
    case core::LoadOutcome::kLoaded:
      return "loaded";
    case core::LoadOutcome::kReloaded:
      return "reloaded";
    case core::LoadOutcome::kUnchanged:
      return "unchanged";
  }
  return "";
}

}  // namespace longshort::server
