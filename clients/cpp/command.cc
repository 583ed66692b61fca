#include "clients/cpp/command.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<v1::ModelSelector> ParseModel(const std::string& text) {
  v1::ModelSelector selector;
  const size_t slash = text.find('/');
  selector.set_name(text.substr(0, slash));
  if (slash == std::string::npos) return selector;
  int64_t version = 0;
  if (!absl::SimpleAtoi(text.substr(slash + 1), &version) || version < 1 || selector.name().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: \"", text, "\" is not of the form NAME or NAME/VERSION, with a version of at least 1"));
  }
  selector.set_version(version);
  return selector;
}

ExitCode FailUsage(Terminal& terminal, absl::string_view message) {
  terminal.error << "longshort: " << message << "\n";
  return ExitCode::kUsage;
}

void CancelUnlessWritable(const CommandContext& context) {
  if (!context.terminal.output) context.client.Cancel();
}

namespace {

void ExplainUnavailable(const CommandContext& context, absl::string_view message) {
  if (const std::string cause = DiagnoseConnection(context.options.connection); !cause.empty()) {
    context.terminal.error << "Likely cause: " << cause << ".\n";
  }
  if (!absl::StrContains(message, "failed to connect") && !absl::StrContains(message, "DNS")) return;
  for (const char* proxy : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    if (std::getenv(proxy) == nullptr) continue;
    context.terminal.error << proxy << " is set: gRPC asks there, but for hosts that no_proxy names.\n";
    break;
  }
}

}  // namespace

ExitCode FailCall(const CommandContext& context, const absl::Status& status) {
  if (!context.terminal.output) return ExitCode::kOther;  // that is why, and is told at the end
  context.terminal.error << "longshort: " << absl::StatusCodeToString(status.code()) << ": " << status.message()
                         << "\n";
  if (absl::IsUnavailable(status)) ExplainUnavailable(context, status.message());
  return ExitCodeOf(status);
}

}  // namespace longshort
