#include "tools/load/report.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort::load {
namespace {

using Json = nlohmann::ordered_json;

// Points of a distribution's curve: every percent, and the tail.
constexpr double kTail[] = {99.5, 99.9, 100};

std::string CodeName(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(static_cast<int>(code)));
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

void AddRow(const char* what, const Distribution& samples, std::string& table) {
  if (samples.count() == 0) return;
  absl::StrAppendFormat(&table, "  %-22s %9d %10.3f %10.3f %10.3f %10.3f %10.3f\n", what, samples.count(),
                        Milliseconds(samples.Mean()), Milliseconds(samples.Percentile(50)),
                        Milliseconds(samples.Percentile(90)), Milliseconds(samples.Percentile(99)),
                        Milliseconds(samples.Max()));
}

std::string HowSent(const Workload& workload) {
  if (workload.open_loop()) return absl::StrFormat("open loop, %g/s", workload.rate);
  return absl::StrFormat("closed loop, %d callers", workload.concurrency);
}

void AddWorkload(const Workload& workload, const Summary& summary, std::string& table) {
  absl::StrAppendFormat(&table, "%s: %s, %s, %.1f s\n", workload.name, NameOf(workload.rpc), HowSent(workload),
                        absl::ToDoubleSeconds(summary.measured));
  absl::StrAppendFormat(&table, "  sent %d = answered %d + refused %d + failed %d + cut off %d\n", summary.sent,
                        summary.answered, summary.refused, summary.failed, summary.cut_off);
  absl::StrAppendFormat(&table, "  per second: %.2f answers, %.2f within the objective", summary.answers_per_second,
                        summary.goodput_per_second);
  if (summary.tokens_per_second > 0) absl::StrAppendFormat(&table, ", %.1f tokens", summary.tokens_per_second);
  absl::StrAppendFormat(&table, "\n  %-22s %9s %10s %10s %10s %10s %10s\n", "milliseconds", "count", "mean", "p50",
                        "p90", "p99", "max");
  AddRow("first token", summary.first_token, table);
  AddRow("between messages", summary.inter_token, table);
  for (const auto& [code, total] : summary.total) {
    AddRow(code == grpc::StatusCode::OK ? "end to end" : CodeName(code).c_str(), total, table);
  }
  AddRow("sent late", summary.send_delay, table);
  if (!summary.first_failure.empty()) absl::StrAppend(&table, "  the first that failed: ", summary.first_failure, "\n");
}

Json ToJson(const Distribution& samples) {
  Json curve = Json::array();
  const auto add = [&](double percent) {
    curve.push_back({percent, absl::ToDoubleSeconds(samples.Percentile(percent))});
  };
  if (samples.count() > 0) {
    for (int percent = 0; percent < 100; ++percent) add(percent);
    for (const double percent : kTail) add(percent);
  }
  return {{"count", samples.count()},
          {"mean", absl::ToDoubleSeconds(samples.Mean())},
          {"p50", absl::ToDoubleSeconds(samples.Percentile(50))},
          {"p90", absl::ToDoubleSeconds(samples.Percentile(90))},
          {"p99", absl::ToDoubleSeconds(samples.Percentile(99))},
          {"max", absl::ToDoubleSeconds(samples.Max())},
          {"curve", std::move(curve)}};
}

// A slice without samples is null: there is nothing to draw.
Json PercentileOverTime(const std::vector<Distribution>& slices, double percent) {
  Json values = Json::array();
  for (const Distribution& slice : slices) {
    values.push_back(slice.count() == 0 ? Json() : Json(absl::ToDoubleSeconds(slice.Percentile(percent))));
  }
  return values;
}

Json ToJson(const Timeline& timeline) {
  return {{"slice_seconds", absl::ToDoubleSeconds(timeline.slice)},
          {"answered", timeline.answered},
          {"refused_or_failed", timeline.refused_or_failed},
          {"tokens", timeline.tokens},
          {"total_p50", PercentileOverTime(timeline.total, 50)},
          {"total_p99", PercentileOverTime(timeline.total, 99)},
          {"first_token_p50", PercentileOverTime(timeline.first_token, 50)},
          {"first_token_p99", PercentileOverTime(timeline.first_token, 99)}};
}

Json ToJson(const Workload& workload, const Summary& summary) {
  Json codes = Json::object();
  for (const auto& [code, total] : summary.total) codes[CodeName(code)] = ToJson(total);
  Json json = {{"name", workload.name}, {"rpc", NameOf(workload.rpc)}};
  if (workload.open_loop()) {
    json["rate"] = workload.rate;
  } else {
    json["concurrency"] = workload.concurrency;
  }
  json.update({{"measured_seconds", absl::ToDoubleSeconds(summary.measured)},
               {"sent", summary.sent},
               {"answered", summary.answered},
               {"refused", summary.refused},
               {"failed", summary.failed},
               {"cut_off", summary.cut_off},
               {"within_objective", summary.within_objective},
               {"answers_per_second", summary.answers_per_second},
               {"tokens_per_second", summary.tokens_per_second},
               {"goodput_per_second", summary.goodput_per_second},
               {"first_token_seconds", ToJson(summary.first_token)},
               {"inter_token_seconds", ToJson(summary.inter_token)},
               {"total_seconds", std::move(codes)},
               {"send_delay_seconds", ToJson(summary.send_delay)},
               {"timeline", ToJson(summary.timeline)}});
  return json;
}

}  // namespace

std::string ReportTable(const LoadOptions& options, const std::vector<Summary>& summaries) {
  std::string table = options.title.empty() ? "" : absl::StrCat(options.title, "\n");
  for (size_t i = 0; i < summaries.size(); ++i) AddWorkload(options.workloads[i], summaries[i], table);
  return table;
}

std::string ReportJson(const LoadOptions& options, const std::vector<std::string>& arguments,
                       const std::vector<Summary>& summaries) {
  Json workloads = Json::array();
  for (size_t i = 0; i < summaries.size(); ++i) workloads.push_back(ToJson(options.workloads[i], summaries[i]));
  const Json report = {{"title", options.title},
                       {"arguments", arguments},
                       {"seed", options.run.seed},
                       {"warm_up_seconds", absl::ToDoubleSeconds(options.run.warm_up)},
                       {"workloads", std::move(workloads)}};
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status TryReport(const std::string& path) {
  if (std::ofstream(path, std::ios::app)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--json=", path, " cannot be written"));
}

absl::Status WriteReport(const std::string& path, const std::string& json) {
  std::ofstream file(path);
  file << json;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--json=", path, " cannot be written"));
}

}  // namespace longshort::load
