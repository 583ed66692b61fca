#include "server/options/serving_options.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "server/options/machine.h"

namespace longshort::server {
namespace {

constexpr size_t kFileLimitBytes = size_t{64} << 10;

constexpr std::string_view kOfClassifiers[] = {"max_batch_size", "max_batch_tokens", "max_queue_delay"};
constexpr std::string_view kOfLanguageModels[] = {"max_streams", "step_time", "cache_bytes", "session_time_to_live"};

// core/schedule/work_order.h has the same range.
constexpr OptionRange<int64_t> kPriorityWeight = {1, 1'000'000};
// Every loaded version needs memory.
constexpr OptionRange<int64_t> kVersionsKept = {1, 1024};

// For all of a model's workers.
constexpr OptionRange<int64_t> kMaxStreams = {1, 65536};
constexpr OptionRange<int64_t> kMaxQueuedRequests = {1, 1 << 20};
constexpr OptionRange<absl::Duration> kMaxQueueTime = {absl::Milliseconds(1), absl::Hours(1)};

std::string FieldName(const OptionTable::Option& row) { return absl::StrReplaceAll(row.name, {{"-", "_"}}); }

absl::Status ReadDevices(const std::string& text, std::string* devices) {
  *devices = text;
  return ParseDevices(text).status();
}

// Fields whose value is an object or a list have no reader here: ReadVersions and ReadWeights parse them.
void AddFieldsOfFile(OptionTable& table, ServingOptions& options) {
  table.BeginSection("In serving.json only:");
  table.AddCustom(
      "version-policy", "{\"latest\": n}", "{\"latest\": 1}",
      absl::StrCat("Which versions the server loads: {\"latest\": n}, {\"specific\": [n, ...]} or \"all\"; at most ",
                   kVersionsKept.high, " of them."),
      nullptr);
  table.AddCustom("priority-weights", "{\"high\": n, ...}", "{\"high\": 16, \"normal\": 4, \"low\": 1}",
                  absl::StrCat("Shares of the priorities, each ", kPriorityWeight.Text(), "."), nullptr);
  table.Add("max-batch-tokens", "n",
            "Classifiers: maximum tokens in one batch, over all its documents. This limits the memory of a batch. A "
            "longer document runs alone.",
            &options.max_batch_tokens, {1, 1 << 30});
  table.Add("max-queue-delay", "\"duration\"",
            "Classifiers: how long an item waits for others to fill its batch. By default a batch has the prepared "
            "items that wait when a worker becomes free.",
            &options.max_queue_delay, {absl::ZeroDuration(), absl::Minutes(1)});
}

OptionTable MakeTable(ServingOptions& options) {
  OptionTable table;
  AddFieldsOfFile(table, options);
  AddServingOptions(table, options);
  return table;
}

absl::Status NoPolicy(const JsonView& fields) {
  return fields.Wrong("version_policy", "{\"latest\": n}, {\"specific\": [n, ...]} or \"all\"");
}

absl::Status OutOfRange(const JsonView& fields, std::string_view field, const OptionRange<int64_t>& range) {
  return fields.Wrong(field, range.Rule());
}

absl::Status ReadSpecific(const JsonView& object, ServingOptions& options) {
  LS_ASSIGN_OR_RETURN(const std::vector<int64_t> versions, object.Integers("specific"));
  core::VersionPolicy& policy = options.version_policy;
  policy.kind = core::VersionPolicy::Kind::kSpecific;
  policy.specific = {versions.begin(), versions.end()};
  const auto count = static_cast<int64_t>(versions.size());
  if (!kVersionsKept.Holds(count) || *policy.specific.begin() < 1 || policy.specific.size() < versions.size()) {
    return object.Wrong("specific",
                        absl::StrCat(kVersionsKept.Text(), " versions, whole numbers from 1 on, each once"));
  }
  options.given["version_policy"] = absl::StrCat("specific ", absl::StrJoin(policy.specific, " "));
  return absl::OkStatus();
}

absl::Status ReadVersions(const JsonView& fields, ServingOptions& options) {
  if (!fields.Has("version_policy")) return absl::OkStatus();
  core::VersionPolicy& policy = options.version_policy;
  policy = core::VersionPolicy();
  if (const auto word = fields.Text("version_policy"); word.ok()) {
    policy.kind = core::VersionPolicy::Kind::kAll;
    options.given["version_policy"] = *word;
    return *word == "all" ? absl::OkStatus() : NoPolicy(fields);
  }
  const auto object = fields.Object("version_policy");
  if (!object.ok()) return NoPolicy(fields);
  LS_RETURN_IF_ERROR(object->RefuseUnknown({"latest", "specific"}));
  if (object->Has("latest") == object->Has("specific")) return NoPolicy(fields);
  if (object->Has("specific")) return ReadSpecific(*object, options);
  LS_ASSIGN_OR_RETURN(policy.latest, object->Integer("latest"));
  if (!kVersionsKept.Holds(policy.latest)) return OutOfRange(*object, "latest", kVersionsKept);
  options.given["version_policy"] = absl::StrCat("latest ", policy.latest);
  return absl::OkStatus();
}

absl::Status ReadWeights(const JsonView& fields, ServingOptions& options) {
  if (!fields.Has("priority_weights")) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const JsonView object, fields.Object("priority_weights"));
  LS_RETURN_IF_ERROR(object.RefuseUnknown({"high", "normal", "low"}));
  auto& weights = options.order.rounds.weights;
  for (const auto& [name, priority] :
       {std::pair("high", core::Priority::kHigh), std::pair("normal", core::Priority::kNormal),
        std::pair("low", core::Priority::kLow)}) {
    if (!object.Has(name)) continue;
    int64_t& weight = weights[static_cast<size_t>(priority)];
    LS_ASSIGN_OR_RETURN(weight, object.Integer(name));
    if (!kPriorityWeight.Holds(weight)) return OutOfRange(object, name, kPriorityWeight);
  }
  options.given["priority_weights"] = absl::StrJoin(weights, ":");
  return absl::OkStatus();
}

// The field's value as text, as on the command line.
absl::StatusOr<std::string> OptionText(const JsonView& fields, const std::string& field, bool is_integer) {
  if (!is_integer) return fields.Text(field);
  LS_ASSIGN_OR_RETURN(const int64_t value, fields.Integer(field));
  return absl::StrCat(value);
}

// `name`: the file's name in errors.
absl::Status ReadField(const JsonView& fields, const std::string& name, const std::string& field,
                       const OptionTable::Option& row) {
  LS_ASSIGN_OR_RETURN(const std::string text, OptionText(fields, field, row.is_integer));
  absl::Status status = row.reader(text);
  if (status.ok()) return status;
  const std::string why(status.message());
  if (absl::StartsWith(why, "must be ")) return fields.Wrong(field, why.substr(8));
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", field, " is ", QuoteForMessage(text), "; ", why));
}

}  // namespace

void AddServingOptions(OptionTable& table, ServingOptions& options) {
  table.BeginSection("How models are served, unless serving.json says otherwise:");
  table.Add({.name = "devices",
             .hint = "LIST",
             .default_text = options.devices,
             .help =
                 "Where models run, a list separated by commas. cpu, or cpu:N for N workers of each model (1 to 64): "
                 "they share its weights, and each has its own cache. cuda:N: the GPU with that number, in a build for "
                 "GPUs. More than one worker helps where a step cannot keep all cores busy. If serving.json sets other "
                 "devices, those workers share the threads that the model would have with the server's --devices.",
             .reader = [&options](const std::string& text) { return ReadDevices(text, &options.devices); },
             .value = [&options] { return options.devices; }});
  table.Add("max-streams", "N",
            "Language models: maximum number of sequences that run at once, per model, if the cache has room for them. "
            "Each sequence reserves the cache that it may need.",
            &options.max_streams, kMaxStreams);
  table.Add("step-time", "duration",
            "Language models: target time of a step while there are prompts to read. Longer steps read more tokens a "
            "second, which suits scoring in bulk (250ms). But a new request waits for the end of a step, and tokens of "
            "streams arrive less evenly.",
            &options.step_time, {absl::Milliseconds(1), absl::Seconds(10)});
  table.Add("cache-bytes", "BYTES",
            "Language models: memory for each model's cache, allocated as it is used. The part that running sequences "
            "do not need keeps prefixes and sessions. The server does not start if this exceeds the available memory. "
            "0 takes the smaller of two sizes: 1.25 times what 16 sequences of the full window and memory need, for "
            "each worker; and half of the memory (or of the cgroup's limit) that other models leave.",
            &options.cache_bytes, {0, int64_t{1} << 50});
  table.Add("max-queued-requests", "N",
            "Maximum number of requests of a model that wait before a new one. The server refuses more with "
            "RESOURCE_EXHAUSTED, because a long queue only delays all requests. Each other client counts with at most "
            "as many requests as the new request's client has waiting.",
            &options.limits.max_queued, kMaxQueuedRequests);
  table.Add(
      "max-queue-time", "duration",
      "Maximum predicted run time of a request and of the queued work of its model that comes before it: about how "
      "long it waits. The server refuses more with RESOURCE_EXHAUSTED. A shorter time keeps admitted requests fast "
      "under overload. It should be long enough for the largest call with many items.",
      &options.limits.max_queued_cost, kMaxQueueTime);
  table.AddLimit(
      "max-queued-requests-per-client", "N",
      "Maximum number of requests of one client that wait before its new one (metadata x-client-id; calls without an "
      "id count as one client). 0: no limit, because the scheduler shares the model fairly between clients anyway.",
      &options.limits.max_queued_per_client, kMaxQueuedRequests.high);
  table.AddLimit("max-queue-time-per-client", "duration",
                 "Maximum predicted run time of a request and of its client's queued work that comes before it. 0: "
                 "no limit.",
                 &options.limits.max_queued_cost_per_client, kMaxQueueTime.high);
  table.AddLimit("max-running-per-client", "N",
                 "Maximum number of requests of one client (of a classifier: items) that run at once, per model. "
                 "The client's other requests stay queued while other clients overtake them. 0: no limit.",
                 &options.order.max_running_per_client, kMaxStreams.high);
  table.Add(
      "max-batch-size", "N",
      "Classifiers: maximum number of items in one batch. A batch has the prepared items, of one image size, that "
      "wait when a worker becomes free. Larger batches use machines with many cores better, but each item waits for "
      "the whole batch.",
      &options.max_batch_size, {1, 1024});
  table.Add("session-time-to-live", "duration",
            "Language models: a session that has not been used for this time ends. Its tokens are kept until then; its "
            "cache pages only while nothing else needs the memory.",
            &options.session_time_to_live, {absl::Seconds(1), absl::Hours(720)});
}

std::string ServingFieldsMarkdown() {
  ServingOptions options;
  OptionTable table;
  AddFieldsOfFile(table, options);
  return table.Markdown(
      [](const OptionTable::Option& row) { return absl::StrCat("\"", FieldName(row), "\": ", row.hint); });
}

absl::StatusOr<ServingOptions> ParseServingOptions(std::string_view text, const std::string& name,
                                                   const ServingOptions& defaults) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  ServingOptions options = defaults;
  const OptionTable table = MakeTable(options);
  std::vector<std::string> names;
  for (const OptionTable::Option& row : table.options()) names.push_back(FieldName(row));
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(std::vector<std::string_view>(names.begin(), names.end())));
  LS_RETURN_IF_ERROR(ReadVersions(fields, options));
  LS_RETURN_IF_ERROR(ReadWeights(fields, options));
  for (const OptionTable::Option& row : table.options()) {
    const std::string field = FieldName(row);
    if (row.reader == nullptr || !fields.Has(field)) continue;
    LS_RETURN_IF_ERROR(ReadField(fields, name, field, row));
    options.given[field] = row.value();
  }
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
                                                   "; it must be absent: the model is a ",
                                                   is_classifier ? "classifier" : "language model"));
  }
  return absl::OkStatus();
}

}  // namespace longshort::server
