#include "tools/load/load_options.h"

#include "absl/strings/str_cat.h"
#include "base/option_table.h"
#include "base/status_macros.h"

namespace longshort::load {
namespace {

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
  table.Add("slo-token", "TIME", "Maximum mean time per token after a call's first.", &options.objective.token);
  table.Add("slo-total", "TIME", "Maximum time from the planned arrival to the end.", &options.objective.total);
  table.BeginSection("Report");
  table.Add("title", "TEXT", "Title of the run in the report and in plots.", &options.title);
  table.Add("json", "FILE", "File to write a more detailed report to, as JSON. tests/bench/load/plot draws it.",
            &options.json_file);
  table.AddSwitch("help", "Print this and exit.", &options.help);
  return table;
}

}  // namespace

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

}  // namespace longshort::load
