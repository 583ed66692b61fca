// longshort-load: puts load on a server and reports latency and throughput, as a table and as JSON. Usage:
// `longshort-load --help`.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "clients/cpp/connection_options.h"
#include "tools/load/load_run.h"
#include "tools/load/summary.h"
#include "tools/load/workload.h"

namespace longshort::load {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kConnectTimeout(10);

// Percentiles of a distribution's curve beyond the whole percents.
constexpr double kTail[] = {99.5, 99.9, 100};

struct LoadOptions {
  client::ConnectionOptions connection;
  // Title of the report and of plots.
  std::string title;
  // Connections to the server. Calls are spread over them in turn.
  int64_t connections = 1;
  RunOptions run;
  ServiceObjective objective;
  // File that receives the report as JSON; empty: none.
  std::string json_file;
  std::vector<Workload> workloads;
  bool help = false;
};

constexpr OptionRange<absl::Duration> kTime = {absl::ZeroDuration(), absl::Hours(24)};

OptionTable MakeTable(LoadOptions& options) {
  OptionTable table;
  table.BeginSection("What is sent");
  table.AddCustom("workload", "WORKLOAD", "",
                  "A workload, as described above. Required; if repeated, all workloads run at once.",
                  [&options](const std::string& text) -> absl::Status {
                    LS_ASSIGN_OR_RETURN(Workload workload, ParseWorkload(text));
                    options.workloads.push_back(std::move(workload));
                    return absl::OkStatus();
                  });
  table.Add("seed", "N", "Seed of arrivals, lengths and prompts. Equal seeds send equal requests at equal times.",
            &options.run.seed);
  table.Add("connections", "N",
            "Connections to the server. Calls are spread over them in turn. A server accepts 1024 calls on each.",
            &options.connections, {1, 256});
  options.connection.AddTo(table);
  table.BeginSection("Duration");
  table.Add("seconds", "TIME", "Duration of the measurement, for example 10s or 2m.", &options.run.measured,
            {absl::Milliseconds(1), kTime.high});
  table.Add("warm-up", "TIME", "Time before the measurement in which requests are sent but not counted.",
            &options.run.warm_up, kTime);
  table.Add("grace", "TIME", "Time after the measurement in which calls may finish. The rest is then cancelled.",
            &options.run.grace, kTime);
  table.BeginSection("Service objective: goodput counts the answers that meet all of these limits");
  table.Add("slo-first-token", "TIME", "Maximum time from the planned arrival to the first token.",
            &options.objective.first_token);
  table.Add("slo-total", "TIME", "Maximum time from the planned arrival to the end.", &options.objective.total);
  table.BeginSection("Report");
  table.Add("title", "TEXT", "Title of the run in the report and in plots.", &options.title);
  table.Add("json", "FILE", "File to write a more detailed report to, as JSON. tests/bench/load/plot draws it.",
            &options.json_file);
  table.AddSwitch("help", "Print this and exit.", &options.help);
  return table;
}

// Errors: INVALID_ARGUMENT naming the option, its value and the limit.
absl::StatusOr<LoadOptions> ParseLoadOptions(const std::vector<std::string>& arguments) {
  LoadOptions options;
  LS_RETURN_IF_ERROR(MakeTable(options).Parse(arguments));
  if (options.help) return options;
  if (options.workloads.empty()) return absl::InvalidArgumentError("give at least one --workload; --help has examples");
  return options;
}

std::string LoadHelp() {
  LoadOptions defaults;
  return absl::StrCat(R"(longshort-load: puts load on a Longshort server and reports its latency and throughput.

  longshort-load --workload=generate,model=enwiki,prompt=128,tokens=32,concurrency=16
      Closed loop: each of 16 callers sends its next request when it has its answer. Measures the capacity.
  longshort-load --workload=generate,model=enwiki,prompt=128,tokens=32,rate=20 --slo-first-token=200ms
      Open loop: 20 requests per second arrive as a Poisson process, however fast the server answers. Measures what
      users see: latency counts from the planned arrival, so it includes all waiting.
  longshort-load --workload=generate,name=short,prompt=64,rate=2 \
                 --workload=generate,name=long,prompt=32768,tokens=1,concurrency=1
      Two workloads at once: short requests, and a caller that sends one long prompt after another.
  longshort-load --workload=classify,model=flowers,image=photo.jpg,rate=50,deadline=500ms

If the server runs on the same machine, both compete for its processors. The report's row "sent late" shows the delay
that this causes in the client.

)",
                      WorkloadHelp(), "\n", MakeTable(defaults).Help());
}

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
  if (!summary.first_failure.empty()) absl::StrAppend(&table, "  first failure: ", summary.first_failure, "\n");
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

// A slice without samples is null, so that plots leave it empty.
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

// Returns the report as text. `summaries` has one entry for each of options.workloads.
std::string ReportTable(const LoadOptions& options, const std::vector<Summary>& summaries) {
  std::string table = options.title.empty() ? "" : absl::StrCat(options.title, "\n");
  for (size_t i = 0; i < summaries.size(); ++i) AddWorkload(options.workloads[i], summaries[i], table);
  return table;
}

// `arguments` is the command line. The report includes it, so that the run can be repeated.
std::string ReportJson(const LoadOptions& options, const std::vector<std::string>& arguments,
                       const std::vector<Summary>& summaries) {
  Json workloads = Json::array();
  for (size_t i = 0; i < summaries.size(); ++i) workloads.push_back(ToJson(options.workloads[i], summaries[i]));
  const Json report = {{"title", options.title},
                       {"arguments", arguments},
                       {"seed", options.run.seed},
                       {"workloads", std::move(workloads)}};
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Returns whether the first attempt to connect succeeds.
bool ConnectsAtOnce(grpc::Channel& channel) {
  const auto until = std::chrono::system_clock::now() + kConnectTimeout;
  grpc_connectivity_state state = channel.GetState(true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    if (!channel.WaitForStateChange(state, until)) return false;
    state = channel.GetState(true);
  }
  return state == GRPC_CHANNEL_READY;
}

// Errors: UNAVAILABLE with the likely cause if a connection fails.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Connect(const LoadOptions& options,
                                                                    const client::ClientCredentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each channel
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int64_t i = 0; i < options.connections; ++i) {
    channels.push_back(credentials.Connect(options.connection.server, arguments));
    if (!ConnectsAtOnce(*channels.back())) {
      const std::string cause = client::DiagnoseConnection(options.connection);
      return absl::UnavailableError(absl::StrCat("cannot connect to ", options.connection.server,
                                                 cause.empty() ? "" : absl::StrCat(": ", cause)));
    }
  }
  return channels;
}

absl::Status Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError("standard output cannot be written");
}

// Errors: UNAVAILABLE if nothing was answered, in the warm-up either. A stream that is cut off has answered what it
// brought.
absl::Status CheckSomeRequest(const RunResult& result) {
  const CallOutcome* failed = nullptr;
  for (const std::vector<CallOutcome>& outcomes : result.outcomes) {
    for (const CallOutcome& outcome : outcomes) {
      const bool is_answer =
          outcome.code == grpc::StatusCode::OK || outcome.code == grpc::StatusCode::RESOURCE_EXHAUSTED;
      if (is_answer || outcome.tokens() > 0) return absl::OkStatus();
      if (!outcome.cut_off) failed = &outcome;
    }
  }
  if (failed == nullptr) return absl::UnavailableError("no request was answered before the run's end");
  return absl::UnavailableError(absl::StrCat("every request failed: ", failed->error));
}

absl::Status CannotWrite(const std::string& path) {
  return absl::UnavailableError(absl::StrCat("--json=", path, " cannot be written"));
}

absl::Status Run(const std::vector<std::string>& arguments) {
  LS_ASSIGN_OR_RETURN(LoadOptions options, ParseLoadOptions(arguments));
  if (options.help) return Print(LoadHelp());
  // Fails before the run if the file cannot be written. Creates an empty file if it does not exist.
  if (!options.json_file.empty() && !std::ofstream(options.json_file, std::ios::app)) {
    return CannotWrite(options.json_file);
  }
  LS_ASSIGN_OR_RETURN(const client::ClientCredentials credentials, client::ReadCredentials(options.connection));
  for (Workload& workload : options.workloads) workload.authorization = credentials.authorization;
  LS_ASSIGN_OR_RETURN(const auto channels, Connect(options, credentials));
  LS_ASSIGN_OR_RETURN(const RunResult result, RunLoad(channels, options.workloads, options.run));
  std::vector<Summary> summaries;
  summaries.reserve(result.outcomes.size());
  for (const std::vector<CallOutcome>& outcomes : result.outcomes) {
    summaries.push_back(Summarise(outcomes, result.begin, result.end, options.objective));
  }
  const absl::Status printed = Print(ReportTable(options, summaries));
  if (!options.json_file.empty()) {
    std::ofstream file(options.json_file);
    file << ReportJson(options, arguments, summaries);
    file.close();
    if (!file) return CannotWrite(options.json_file);
  }
  LS_RETURN_IF_ERROR(printed);
  return CheckSomeRequest(result);
}

}  // namespace
}  // namespace longshort::load

int main(int argc, char** argv) {
  const absl::Status status = longshort::load::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "longshort-load: %s\n", status.message());
  return 1;
}
