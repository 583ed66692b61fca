#include "server/options/serving_options.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/json_fields.h"
#include "base/option_values.h"
#include "base/status_macros.h"
#include "base/stored_bytes.h"
#include "base/strict_json.h"
#include "core/classification/batch_former.h"
#include "server/options/devices.h"
#include "server/options/option_ranges.h"

namespace longshort {
namespace {

constexpr size_t kFileLimitBytes = size_t{64} << 10;

constexpr std::string_view kFields[] = {"version_policy",
                                        "devices",
                                        "priority_weights",
                                        "max_queued_requests",
                                        "max_queue_time",
                                        "max_queued_requests_per_client",
                                        "max_queue_time_per_client",
                                        "max_running_per_client",
                                        "max_batch_size",
                                        "max_batch_tokens",
                                        "max_queue_delay",
                                        "max_streams",
                                        "step_time",
                                        "cache_bytes",
                                        "session_time_to_live"};
constexpr std::string_view kOfClassifiers[] = {"max_batch_size", "max_batch_tokens", "max_queue_delay"};
constexpr std::string_view kOfLanguageModels[] = {"max_streams", "step_time", "cache_bytes", "session_time_to_live"};

// Of limits per client, 0 is none.
int64_t OrNone(int64_t limit) { return limit == 0 ? std::numeric_limits<int64_t>::max() : limit; }
absl::Duration OrNone(absl::Duration limit) { return limit == absl::ZeroDuration() ? absl::InfiniteDuration() : limit; }

// Reads the fields that are there, and leaves the others' variables as they are.
class FieldReader {
 public:
  FieldReader(const JsonFields& fields, std::map<std::string, std::string>& given) : fields_(fields), given_(given) {}

  absl::Status Read(std::string_view field, const IntegerRange& range, int64_t& value) {
    if (!fields_.Has(field)) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(value, fields_.Integer(field));
    if (!range.Holds(value)) return OutOfRange(field, absl::StrCat(range.low), absl::StrCat(range.high));
    given_[std::string(field)] = absl::StrCat(value);
    return absl::OkStatus();
  }

  absl::Status Read(std::string_view field, const DurationRange& range, absl::Duration& value) {
    if (!fields_.Has(field)) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const std::string text, fields_.Text(field));
    if (!ReadOptionValue(text, &value).ok()) {
      return fields_.OutOfRange(field, "a duration with its unit, such as \"5ms\" or \"30s\"");
    }
    if (!range.Holds(value)) {
      return OutOfRange(field, absl::FormatDuration(range.low), absl::FormatDuration(range.high));
    }
    given_[std::string(field)] = absl::FormatDuration(value);
    return absl::OkStatus();
  }

  // A limit per client.
  template <typename T>
  absl::Status ReadLimit(std::string_view field, const OptionRange<T>& range, T& limit) {
    if (!fields_.Has(field)) return absl::OkStatus();
    LS_RETURN_IF_ERROR(Read(field, range, limit));
    limit = OrNone(limit);
    return absl::OkStatus();
  }

  absl::Status ReadDevices(std::string& devices) {
    if (!fields_.Has("devices")) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(devices, fields_.Text("devices"));
    if (const absl::Status status = ParseDevices(devices).status(); !status.ok()) {
      return fields_.OutOfRange("devices", absl::StrCat("what this says: ", status.message()));
    }
    given_["devices"] = devices;
    return absl::OkStatus();
  }

  absl::Status ReadWeights(std::array<int64_t, kPriorities>& weights) {
    if (!fields_.Has("priority_weights")) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const JsonFields of_priorities, fields_.Object("priority_weights"));
    LS_RETURN_IF_ERROR(of_priorities.RefuseUnknown({"high", "normal", "low"}));
    std::map<std::string, std::string> texts;
    FieldReader reader(of_priorities, texts);
    LS_RETURN_IF_ERROR(reader.Read("high", kPriorityWeight, weights[static_cast<size_t>(Priority::kHigh)]));
    LS_RETURN_IF_ERROR(reader.Read("normal", kPriorityWeight, weights[static_cast<size_t>(Priority::kNormal)]));
    LS_RETURN_IF_ERROR(reader.Read("low", kPriorityWeight, weights[static_cast<size_t>(Priority::kLow)]));
    given_["priority_weights"] = absl::StrJoin(weights, ":");
    return absl::OkStatus();
  }

  absl::Status ReadVersions(VersionPolicy& policy) {
    if (!fields_.Has("version_policy")) return absl::OkStatus();
    policy = VersionPolicy();
    if (const auto word = fields_.Text("version_policy"); word.ok()) {
      policy.kind = VersionPolicy::Kind::kAll;
      given_["version_policy"] = *word;
      return *word == "all" ? absl::OkStatus() : NoPolicy();
    }
    const auto object = fields_.Object("version_policy");
    if (!object.ok()) return NoPolicy();
    LS_RETURN_IF_ERROR(object->RefuseUnknown({"latest", "specific"}));
    if (object->Has("latest") == object->Has("specific")) return NoPolicy();
    if (object->Has("specific")) return ReadSpecific(*object, policy);
    std::map<std::string, std::string> texts;
    LS_RETURN_IF_ERROR(FieldReader(*object, texts).Read("latest", kVersionsKept, policy.latest));
    given_["version_policy"] = absl::StrCat("latest ", policy.latest);
    return absl::OkStatus();
  }

 private:
  absl::Status OutOfRange(std::string_view field, const std::string& low, const std::string& high) const {
    return fields_.OutOfRange(field, absl::StrCat("in [", low, ", ", high, "]"));
  }

  absl::Status NoPolicy() const {
    return fields_.OutOfRange("version_policy", "{\"latest\": n}, {\"specific\": [n, ...]} or \"all\"");
  }

  absl::Status ReadSpecific(const JsonFields& object, VersionPolicy& policy) {
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> versions, object.Integers("specific"));
    policy.kind = VersionPolicy::Kind::kSpecific;
    policy.specific = {versions.begin(), versions.end()};
    const auto count = static_cast<int64_t>(versions.size());
    if (!kVersionsKept.Holds(count) || *policy.specific.begin() < 1 || policy.specific.size() < versions.size()) {
      return object.OutOfRange("specific", absl::StrCat(kVersionsKept.low, " to ", kVersionsKept.high,
                                                        " versions, whole numbers from 1 on, each once"));
    }
    given_["version_policy"] = absl::StrCat("specific ", absl::StrJoin(policy.specific, " "));
    return absl::OkStatus();
  }

  const JsonFields& fields_;
  std::map<std::string, std::string>& given_;
};

}  // namespace

ServingOptions DefaultServingOptions(const ServerOptions& options) {
  const BatchFormer::Options batches;
  ServingOptions serving = {.devices = options.devices,
                            .max_batch_size = options.max_batch_size,
                            .max_batch_tokens = batches.max_batch_tokens,
                            .max_queue_delay = batches.max_queue_delay,
                            .max_streams = options.max_streams,
                            .step_time = options.step_time,
                            .cache_bytes = options.cache_bytes,
                            .session_time_to_live = options.session_time_to_live};
  serving.limits = {.max_queued = options.max_queued_requests,
                    .max_queued_cost = options.max_queue_time,
                    .max_queued_per_client = OrNone(options.max_queued_requests_per_client),
                    .max_queued_cost_per_client = OrNone(options.max_queue_time_per_client)};
  serving.order.max_running_per_client = OrNone(options.max_running_per_client);
  return serving;
}

absl::StatusOr<ServingOptions> ParseServingOptions(std::string_view text, const std::string& name,
                                                   const ServingOptions& defaults) {
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(kFields));
  ServingOptions options = defaults;
  FieldReader reader(fields, options.given);
  LS_RETURN_IF_ERROR(reader.ReadVersions(options.version_policy));
  LS_RETURN_IF_ERROR(reader.ReadDevices(options.devices));
  LS_RETURN_IF_ERROR(reader.ReadWeights(options.order.rounds.weights));
  LS_RETURN_IF_ERROR(reader.Read("max_queued_requests", kMaxQueuedRequests, options.limits.max_queued));
  LS_RETURN_IF_ERROR(reader.Read("max_queue_time", kMaxQueueTime, options.limits.max_queued_cost));
  LS_RETURN_IF_ERROR(reader.ReadLimit("max_queued_requests_per_client", kMaxQueuedRequestsPerClient,
                                      options.limits.max_queued_per_client));
  LS_RETURN_IF_ERROR(
      reader.ReadLimit("max_queue_time_per_client", kMaxQueueTimePerClient, options.limits.max_queued_cost_per_client));
  LS_RETURN_IF_ERROR(
      reader.ReadLimit("max_running_per_client", kMaxRunningPerClient, options.order.max_running_per_client));
  LS_RETURN_IF_ERROR(reader.Read("max_batch_size", kMaxBatchSize, options.max_batch_size));
  LS_RETURN_IF_ERROR(reader.Read("max_batch_tokens", kMaxBatchTokens, options.max_batch_tokens));
  LS_RETURN_IF_ERROR(reader.Read("max_queue_delay", kMaxQueueDelay, options.max_queue_delay));
  LS_RETURN_IF_ERROR(reader.Read("max_streams", kMaxStreams, options.max_streams));
  LS_RETURN_IF_ERROR(reader.Read("step_time", kStepTime, options.step_time));
  LS_RETURN_IF_ERROR(reader.Read("cache_bytes", kCacheBytes, options.cache_bytes));
  LS_RETURN_IF_ERROR(reader.Read("session_time_to_live", kSessionTimeToLive, options.session_time_to_live));
  return options;
}

absl::StatusOr<ServingOptions> ReadServingOptions(const std::string& path, const ServingOptions& defaults) {
  LS_ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadOptionalTextFile(path, kFileLimitBytes));
  if (!text.has_value()) return defaults;
  return ParseServingOptions(*text, path, defaults);
}

absl::Status CheckKind(const ServingOptions& options, const std::string& name, ModelKind kind) {
  const bool is_classifier = kind == ModelKind::kClassifier;
  const absl::Span<const std::string_view> misplaced =
      is_classifier ? absl::MakeConstSpan(kOfLanguageModels) : absl::MakeConstSpan(kOfClassifiers);
  for (const std::string_view field : misplaced) {
    const auto given = options.given.find(std::string(field));
    if (given == options.given.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", given->first, " is ", QuoteForMessage(given->second),
                                                   ", it must be absent: the model is a ",
                                                   is_classifier ? "classifier" : "language model"));
  }
  return absl::OkStatus();
}

}  // namespace longshort
