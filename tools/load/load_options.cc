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
                  "As described above. May be given several times: all workloads run at once. At least one.",
                  [&options](const std::string& text) -> absl::Status {
                    LS_ASSIGN_OR_RETURN(Workload workload, ParseWorkload(text));
                    options.workloads.push_back(std::move(workload));
                    return absl::OkStatus();
                  });
  table.Add("seed", "N", "Of arrivals, lengths and prompts: the same seed sends the same requests at the same times.",
            &options.run.seed);
  table.Add("connections", "N",
            "Connections to the server; calls take them in turn. A server takes 1024 calls on each.",
            &options.connections, {1, 256});
  options.connection.AddTo(table);
  table.BeginSection("For how long");
  table.Add("seconds", "TIME", "How long to measure, as in 10s or 2m.", &options.run.measured,
            {absl::Milliseconds(1), kTime.high});
  table.Add("warm-up", "TIME", "How long to send before that, unmeasured.", &options.run.warm_up, kTime);
  table.Add("grace", "TIME", "How long calls may go on after that before they are cut off.", &options.run.grace, kTime);
  table.BeginSection("Goodput: the answers per second that keep to all of");
  table.Add("slo-first-token", "TIME", "From the planned arrival to the first token.", &options.objective.first_token);
  table.Add("slo-token", "TIME", "The mean time of a call's tokens after the first.", &options.objective.token);
  table.Add("slo-total", "TIME", "From the planned arrival to the end.", &options.objective.total);
  table.BeginSection("Report");
  table.Add("title", "TEXT", "Of this run, in the report and in plots.", &options.title);
  table.Add("json", "FILE", "Write the report there, too, with more detail: tests/bench/load/plot draws it.",
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
  return absl::StrCat(R"(longshort-load: puts load on a Longshort server and tells how it bears it.

  longshort-load --workload=generate,model=enwiki,prompt=128,tokens=32,concurrency=16
      closed loop: 16 callers, each sends its next request when it has its answer. Finds what the server can do.
  longshort-load --workload=generate,model=enwiki,prompt=128,tokens=32,rate=20 --slo-first-token=200ms
      open loop: 20 requests a second, as a Poisson process, whatever the server does. Shows what users would see:
      latency counts from the planned arrival, so waiting cannot hide.
  longshort-load --workload=generate,name=short,prompt=64,rate=2 \
                 --workload=generate,name=long,prompt=32768,tokens=1,concurrency=1
      short requests beside one long prompt after the other.
  longshort-load --workload=classify,model=flowers,image=photo.jpg,rate=50,deadline=500ms

The client shares the processors with a server on the same machine; "sent late" tells if that disturbed it.

)",
                      WorkloadHelp(), "\n", MakeTable(defaults).Help());
}

}  // namespace longshort::load
