// RunProgram: which command a command line names, and its options.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/command.h"
#include "longshort_version.h"

namespace longshort {
namespace {

// Options that may stand before and behind the command's name.
struct ProgramOptions {
  CommonOptions common;
  bool help = false;
  bool version = false;

  void AddTo(OptionTable& table) {
    table.Add("model", "NAME[/VERSION]", "Which model; may be left out if the server has one.", &common.model);
    table.Add("timeout", "TIME", "How long a call may take, as in 30s or 5m; inf is unlimited.", &common.timeout);
    table.Add("client-id", "ID", "Who asks: sessions belong to a client, and the server is shared among them fairly.",
              &common.client_id);
    common.connection.AddTo(table);
    table.AddSwitch("json", "Write one JSON object a line, with the field names of longshort.v1.", &common.json);
    table.AddSwitch("help", "Show this; behind a command, the command's.", &help);
    table.AddSwitch("version", "Show the version.", &version);
  }
};

using Commands = std::array<std::unique_ptr<Command>, 8>;

Commands MakeCommands() {
  return {MakeScoreCommand(), MakeClassifyCommand(), MakeGenerateCommand(), MakeModelsCommand(),
          MakeReadyCommand(), MakeTokenizeCommand(), MakeSessionCommand(),  MakeTokenCommand()};
}

void WriteProgramHelp(const Commands& commands, const OptionTable& table, std::ostream& output) {
  output << "Usage: longshort [options] COMMAND [options] [FILE|FOLDER|-]...\n\n"
         << "Scores and continues text, and classifies images and texts, with the models of a Longshort "
            "server.\n\nCommands:\n";
  for (const auto& command : commands) output << absl::StrFormat("  %-10s%s\n", command->name(), command->summary());
  output << "\n\"longshort COMMAND --help\" explains each, with examples.\n\nOptions:\n"
         << table.Help() << "\n"
         << ExitCodesHelp();
}

void WriteVersion(std::ostream& output) {
  output << "longshort " << kVersion;
  if (!kCudaToolkit.empty()) output << " (built with CUDA toolkit " << kCudaToolkit << ")";
  output << "\n";
}

ExitCode RunCommand(Command& command, absl::Span<const std::string> arguments, ProgramOptions& values,
                    Terminal& terminal, const ClientFactory& make_client) {
  OptionTable table;
  table.BeginSection("Options:");
  command.AddOptions(table);
  table.BeginSection("Options of every command:");
  values.AddTo(table);

  const absl::StatusOr<std::vector<std::string>> others = table.ParseAmongOthers(arguments);
  if (!others.ok()) {
    return FailUsage(terminal, absl::StrCat(others.status().message(), "\n\"longshort ", command.name(),
                                            " --help\" lists the options."));
  }
  if (values.help) {
    terminal.output << command.description() << "\n" << table.Help() << "\n" << ExitCodesHelp();
    return ExitCode::kOk;
  }
  if (values.version) {
    WriteVersion(terminal.output);
    return ExitCode::kOk;
  }
  if (values.common.timeout <= absl::ZeroDuration()) {
    return FailUsage(terminal, absl::StrCat("--timeout is ", absl::FormatDuration(values.common.timeout),
                                            "; it must be longer than 0"));
  }
  if (values.common.connection.server.empty()) return FailUsage(terminal, "--server is empty; it must be HOST:PORT");
  // gRPC would end the program.
  if (!std::all_of(values.common.client_id.begin(), values.common.client_id.end(), absl::ascii_isprint)) {
    return FailUsage(terminal, absl::StrCat("--client-id is \"", absl::CHexEscape(values.common.client_id),
                                            "\"; it must be of printable ASCII characters"));
  }
  const absl::StatusOr<v1::ModelSelector> model = ParseModel(values.common.model);
  if (!model.ok()) return FailUsage(terminal, model.status().message());

  const absl::StatusOr<ClientCredentials> credentials = ReadCredentials(values.common.connection);
  if (!credentials.ok()) return FailUsage(terminal, credentials.status().message());
  const std::shared_ptr<Client> client = make_client({.server = values.common.connection.server,
                                                      .timeout = values.common.timeout,
                                                      .client_id = values.common.client_id,
                                                      .credentials = *credentials});
  return command.Run(*others, {values.common, *model, *client, terminal});
}

}  // namespace

ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client) {
  const Commands commands = MakeCommands();
  ProgramOptions values;
  OptionTable table;
  values.AddTo(table);

  const absl::StatusOr<std::vector<std::string>> rest = table.ParseLeading(arguments);
  if (!rest.ok()) {
    return FailUsage(terminal, absl::StrCat(rest.status().message(), "\n\"longshort --help\" lists the options."));
  }
  if (values.version) {
    WriteVersion(terminal.output);
    return ExitCode::kOk;
  }
  if (rest->empty()) {
    WriteProgramHelp(commands, table, values.help ? terminal.output : terminal.error);
    return values.help ? ExitCode::kOk : ExitCode::kUsage;
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const auto& candidate) { return candidate->name() == rest->front(); });
  if (command == commands.end()) {
    return FailUsage(terminal,
                     absl::StrCat("unknown command \"", rest->front(), "\"\n\"longshort --help\" lists them."));
  }
  return RunCommand(**command, absl::MakeConstSpan(*rest).subspan(1), values, terminal, make_client);
}

}  // namespace longshort
