#include "clients/cpp/program.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/command.h"
#include "longshort_version.h"

namespace longshort {
namespace {

// Flags that may stand before and behind the command's name.
struct ProgramFlags {
  CommonOptions common;
  bool help = false;
  bool version = false;

  void AddTo(FlagSet& flags) {
    flags.Add("server", "HOST:PORT", absl::StrCat("Where the server listens; ", common.server, " if unset."),
              &common.server);
    flags.Add("model", "NAME[/VERSION]", "Which model; may be left out if the server has one.", &common.model);
    flags.Add("timeout", "TIME", "How long a call may take, as in 30s or 5m; unlimited if unset.", &common.timeout);
    flags.Add("json", "", "Write one JSON object a line, with the field names of longshort.v1.", &common.json);
    flags.Add("help", "", "Show this; behind a command, the command's.", &help);
    flags.Add("version", "", "Show the version.", &version);
  }
};

using Commands = std::array<std::unique_ptr<Command>, 4>;

Commands MakeCommands() {
  return {MakeScoreCommand(), MakeGenerateCommand(), MakeModelsCommand(), MakeTokenizeCommand()};
}

void WriteProgramHelp(const Commands& commands, const FlagSet& flags, std::ostream& output) {
  output << "Usage: longshort [flags] COMMAND [flags] [FILE|-]...\n\n"
         << "Scores and continues text with the models of a Longshort server.\n\nCommands:\n";
  for (const auto& command : commands) output << absl::StrFormat("  %-10s%s\n", command->name(), command->summary());
  output << "\n\"longshort COMMAND --help\" explains each, with examples.\n\nFlags:\n"
         << flags.Help() << "\n"
         << ExitCodesHelp();
}

void WriteCommandHelp(const Command& command, const FlagSet& own, const FlagSet& common, std::ostream& output) {
  output << command.description() << "\n";
  const std::string own_help = own.Help();
  if (!own_help.empty()) output << "Flags:\n" << own_help << "\n";
  output << "Flags of every command:\n" << common.Help() << "\n" << ExitCodesHelp();
}

void WriteVersion(std::ostream& output) {
  output << "longshort " << kVersion;
  if (!kCudaToolkit.empty()) output << " (built with CUDA toolkit " << kCudaToolkit << ")";
  output << "\n";
}

ExitCode RunCommand(Command& command, absl::Span<const std::string> arguments, ProgramFlags& values, Terminal& terminal,
                    const ClientFactory& make_client) {
  FlagSet own_flags;
  command.AddFlags(own_flags);
  FlagSet common_flags;
  values.AddTo(common_flags);
  FlagSet flags = own_flags;
  values.AddTo(flags);

  const absl::StatusOr<std::vector<std::string>> others = flags.Parse(arguments);
  if (!others.ok()) {
    return FailUsage(terminal, absl::StrCat(others.status().message(), "\n\"longshort ", command.name(),
                                            " --help\" lists the flags."));
  }
  if (values.help) {
    WriteCommandHelp(command, own_flags, common_flags, terminal.output);
    return ExitCode::kOk;
  }
  const absl::StatusOr<v1::ModelSelector> model = ParseModel(values.common.model);
  if (!model.ok()) return FailUsage(terminal, model.status().message());

  const std::shared_ptr<Client> client =
      make_client({.server = values.common.server, .timeout = values.common.timeout});
  return command.Run(*others, {values.common, *model, *client, terminal});
}

}  // namespace

ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client) {
  const Commands commands = MakeCommands();
  ProgramFlags values;
  FlagSet flags;
  values.AddTo(flags);

  const absl::StatusOr<std::vector<std::string>> rest = flags.ParseLeading(arguments);
  if (!rest.ok()) {
    return FailUsage(terminal, absl::StrCat(rest.status().message(), "\n\"longshort --help\" lists the flags."));
  }
  if (values.version) {
    WriteVersion(terminal.output);
    return ExitCode::kOk;
  }
  if (rest->empty()) {
    WriteProgramHelp(commands, flags, values.help ? terminal.output : terminal.error);
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
