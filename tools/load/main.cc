// longshort-load: puts load on a server and tells how it bears it. `longshort-load --help` tells how.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "clients/cpp/connection_options.h"
#include "tools/load/load_options.h"
#include "tools/load/load_run.h"
#include "tools/load/report.h"
#include "tools/load/summary.h"

namespace longshort::load {
namespace {

constexpr std::chrono::seconds kConnectTimeout(10);

// Whether a connection comes about at the first try.
bool ConnectsAtOnce(grpc::Channel& channel) {
  const auto until = std::chrono::system_clock::now() + kConnectTimeout;
  grpc_connectivity_state state = channel.GetState(true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    if (!channel.WaitForStateChange(state, until)) return false;
    state = channel.GetState(true);
  }
  return state == GRPC_CHANNEL_READY;
}

// Errors: UNAVAILABLE with the likely cause if no connection comes about.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Connect(const LoadOptions& options,
                                                                    const ClientCredentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each channel
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int64_t i = 0; i < options.connections; ++i) {
    channels.push_back(credentials.Connect(options.connection.server, arguments));
    if (!ConnectsAtOnce(*channels.back())) {
      const std::string cause = DiagnoseConnection(options.connection);
      return absl::UnavailableError(absl::StrCat("no connection to ", options.connection.server, " came about",
                                                 cause.empty() ? "" : absl::StrCat(": ", cause)));
    }
  }
  return channels;
}

absl::Status Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError("standard output cannot be written");
}

// Errors: UNAVAILABLE if all failed, those of the warm-up too.
absl::Status CheckSomeRequest(const RunResult& result) {
  const CallOutcome* failed = nullptr;
  for (const std::vector<CallOutcome>& outcomes : result.outcomes) {
    for (const CallOutcome& outcome : outcomes) {
      const bool is_answer =
          outcome.code == grpc::StatusCode::OK || outcome.code == grpc::StatusCode::RESOURCE_EXHAUSTED;
      if (is_answer || outcome.cut_off) return absl::OkStatus();
      failed = &outcome;
    }
  }
  if (failed == nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("every request failed: ", failed->error));
}

absl::Status Run(const std::vector<std::string>& arguments) {
  LS_ASSIGN_OR_RETURN(LoadOptions options, ParseLoadOptions(arguments));
  if (options.help) {
    return Print(LoadHelp());
  }
  if (!options.json_file.empty()) LS_RETURN_IF_ERROR(TryReport(options.json_file));
  LS_ASSIGN_OR_RETURN(const ClientCredentials credentials, ReadCredentials(options.connection));
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
    LS_RETURN_IF_ERROR(WriteReport(options.json_file, ReportJson(options, arguments, summaries)));
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
