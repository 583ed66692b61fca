// RunProgram: parses the command line, runs the command and prints its errors.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "longshort_version.h"

namespace longshort::client {
namespace {

// Options that may come before or after the command's name.
struct ProgramOptions {
  CommonOptions common;
  HelpForm help = HelpForm::kNone;
  bool version = false;

  void AddTo(OptionTable& table) {
    table.BeginCommonSection("Options of every command:");
    table.Add("model", "NAME[/VERSION]", "Model to use; optional if the server has only one.", &common.model);
    table.Add("timeout", "TIME", "Deadline of each call, such as 30s or 5m; inf means none.", &common.timeout,
              {absl::Milliseconds(1), absl::InfiniteDuration()});
    table.Add("client-id", "ID",
              "Name of this client, which owns its sessions. A server with --trust-client-id gives it a fair share.",
              &common.client_id);
    common.connection.AddTo(table);
    table.AddSwitch("json", "Write JSON lines with the field names of longshort.v1.", &common.json);
    table.AddHelp(&help, HelpForm::kAll);
    table.AddSwitch("version", "Show the version.", &version);
  }
};

using Commands = std::array<std::unique_ptr<Command>, 9>;

Commands MakeCommands() {
  return {MakeScoreCommand(), MakeClassifyCommand(), MakeEmbedCommand(),   MakeGenerateCommand(), MakeModelsCommand(),
          MakeReadyCommand(), MakeTokenizeCommand(), MakeSessionCommand(), MakeTokenCommand()};
}

// Returns text for errors of connections; empty if no environment variable names a proxy. gRPC reads the first variable
// that is set; an empty one means no proxy.
std::string ExplainProxyVariable() {
  for (const char* proxy : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const char* const value = std::getenv(proxy);
    if (value == nullptr) continue;
    if (*value == '\0') break;
    return absl::StrCat(proxy, " is set: gRPC connects through this proxy, except to the hosts in no_proxy");
  }
  return {};
}

// Returns the last line of --help. `program` is "longshort", or also has the command.
std::string AboutHelpAll(absl::string_view program) {
  return absl::StrCat("\"", program, " --help=all\" also lists the options of every command (--server, --timeout, ",
                      "--tls, ...) and the exit codes.\n");
}

void WriteProgramHelp(const Commands& commands, const OptionTable& table, HelpForm form, std::ostream& output) {
  output << "Usage: longshort [--server=HOST:PORT] COMMAND [options] [FILE|FOLDER|-]...\n\n"
         << "Scores and continues text, and classifies and embeds images and texts, with the models of a Longshort "
            "server.\n\nCommands:\n";
  for (const auto& command : commands) output << absl::StrFormat("  %-10s%s\n", command->name, command->summary);
  output << "\n\"longshort COMMAND --help\" explains a command, with examples.\n";
  if (form == HelpForm::kAll) {
    output << "\n" << table.Help() << "\n" << ExitCodesHelp();
  } else {
    output << AboutHelpAll("longshort");
  }
}

ExitCode WriteVersion(std::ostream& output) {
  output << "longshort " << kVersion;
  if (!kCudaToolkit.empty()) output << " (built with CUDA toolkit " << kCudaToolkit << ")";
  output << "\n";
  return ExitCode::kOk;
}

// Parses "name" or "name/version". Errors: UsageError.
absl::StatusOr<v1::ModelSelector> ParseModel(const std::string& text) {
  v1::ModelSelector selector;
  const size_t slash = text.find('/');
  selector.set_name(text.substr(0, slash));
  if (slash == std::string::npos) return selector;
  int64_t version = 0;
  if (!absl::SimpleAtoi(text.substr(slash + 1), &version) || version < 1 || selector.name().empty()) {
    return UsageError(
        absl::StrCat("--model is \"", text, "\"; it must be NAME or NAME/VERSION, with a version of at least 1"));
  }
  selector.set_version(version);
  return selector;
}

absl::StatusOr<ExitCode> RunCommand(Command& command, absl::Span<const std::string> arguments, ProgramOptions& values,
                                    Terminal& terminal, const ClientFactory& make_client) {
  OptionTable table;
  table.BeginSection("Options:");
  command.AddOptions(table);
  values.AddTo(table);

  const absl::StatusOr<std::vector<std::string>> others = table.ParseAmongOthers(arguments);
  if (!others.ok()) {
    return UsageError(
        absl::StrCat(others.status().message(), "\n\"longshort ", command.name, " --help=all\" lists the options."));
  }
  if (values.help != HelpForm::kNone) {
    const std::string options = table.Help(values.help);
    terminal.output << command.description << (options.empty() ? "" : "\n") << options << "\n";
    if (values.help == HelpForm::kAll) {
      terminal.output << ExitCodesHelp();
    } else {
      terminal.output << AboutHelpAll(absl::StrCat("longshort ", command.name));
    }
    return ExitCode::kOk;
  }
  if (values.version) return WriteVersion(terminal.output);
  const CommonOptions& options = values.common;
  // gRPC aborts on other characters.
  if (!std::all_of(options.client_id.begin(), options.client_id.end(), absl::ascii_isprint)) {
    return UsageError(absl::StrCat("--client-id is \"", absl::CHexEscape(options.client_id),
                                   "\"; it must be printable ASCII characters"));
  }
  LS_ASSIGN_OR_RETURN(const v1::ModelSelector model, ParseModel(options.model));
  LS_ASSIGN_OR_RETURN(const ClientCredentials credentials, AsUsage(ReadCredentials(options.connection)));
  const std::shared_ptr<Client> client = make_client({.server = options.connection.server,
                                                      .timeout = options.timeout,
                                                      .client_id = options.client_id,
                                                      .credentials = credentials});
  return command.Run(*others, {options, model, *client, terminal});
}

absl::StatusOr<ExitCode> RunLine(absl::Span<const std::string> arguments, ProgramOptions& values, Terminal& terminal,
                                 const ClientFactory& make_client) {
  const Commands commands = MakeCommands();
  OptionTable table;
  values.AddTo(table);
  const absl::StatusOr<std::vector<std::string>> rest = table.ParseLeading(arguments);
  if (!rest.ok()) {
    return UsageError(absl::StrCat(rest.status().message(), "\n\"longshort --help=all\" lists the options."));
  }
  if (values.version) return WriteVersion(terminal.output);
  if (rest->empty()) {
    const bool requested = values.help != HelpForm::kNone;
    WriteProgramHelp(commands, table, values.help, requested ? terminal.output : terminal.error);
    return requested ? ExitCode::kOk : ExitCode::kUsage;
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const auto& candidate) { return candidate->name == rest->front(); });
  if (command == commands.end()) {
    return UsageError(
        absl::StrCat("unknown command \"", rest->front(), "\"\n\"longshort --help\" lists the commands."));
  }
  return RunCommand(**command, absl::MakeConstSpan(*rest).subspan(1), values, terminal, make_client);
}

// Prints the likely cause of a failed connection.
void ExplainUnavailable(const ConnectionOptions& options, std::ostream& error) {
  if (const std::string cause = DiagnoseConnection(options); !cause.empty()) {
    error << "Likely cause: " << cause << ".\n";
  }
  if (!options.may_use_proxy() || absl::StartsWith(options.server, "unix:")) return;
  if (const std::string proxy = ExplainProxyVariable(); !proxy.empty()) error << proxy << ".\n";
}

}  // namespace

void CancelUnlessWritable(const CommandContext& context) {
  if (!context.terminal.output) context.client.Cancel();
}

ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client) {
  ProgramOptions values;
  const absl::StatusOr<ExitCode> code = RunLine(arguments, values, terminal, make_client);
  if (code.ok()) return *code;
  const absl::Status& status = code.status();
  if (IsUsageError(status)) {
    terminal.error << "longshort: " << status.message() << "\n";
  } else if (!terminal.output) {
    return ExitCode::kOther;  // main prints the cause
  } else {
    terminal.error << "longshort: " << absl::StatusCodeToString(status.code()) << ": " << status.message() << "\n";
    if (absl::IsUnavailable(status)) {
      ExplainUnavailable(values.common.connection, terminal.error);
    }
  }
  return ExitCodeOf(status);
}

}  // namespace longshort::client
