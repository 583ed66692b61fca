// The commands of the program `longshort`, and what they share. main.cc adds the process around them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/option_table.h"
#include "clients/cpp/client.h"
#include "clients/cpp/connection_options.h"
#include "clients/cpp/failures.h"
#include "clients/cpp/terminal.h"

namespace longshort::client {

// Options of every command.
struct CommonOptions {
  ConnectionOptions connection;
  // Name, or name/version, of the model; empty for the only one.
  std::string model;
  absl::Duration timeout = absl::InfiniteDuration();
  std::string client_id;
  // Write JSON lines instead of tables.
  bool json = false;
};

// The environment of a command. The members outlive the command.
struct CommandContext {
  const CommonOptions& options;
  // The model of --model.
  const v1::ModelSelector& model;
  Client& client;
  Terminal& terminal;
};

class Command {
 public:
  virtual ~Command() = default;

  virtual void AddOptions(OptionTable& /*table*/) {}
  // `arguments` exclude options. Errors: UsageError, or the server's status; the caller prints them. If the command has
  // printed the error itself, it returns an exit code.
  virtual absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) = 0;

  const absl::string_view name;
  // One line for the list of commands.
  const absl::string_view summary;
  // Text of --help: how to call the command, what it does, examples.
  const absl::string_view description;

 protected:
  Command(absl::string_view its_name, absl::string_view its_summary, absl::string_view its_description)
      : name(its_name), summary(its_summary), description(its_description) {}
};

std::unique_ptr<Command> MakeClassifyCommand();
std::unique_ptr<Command> MakeEmbedCommand();
std::unique_ptr<Command> MakeScoreCommand();
std::unique_ptr<Command> MakeGenerateCommand();
std::unique_ptr<Command> MakeModelsCommand();
std::unique_ptr<Command> MakeReadyCommand();
std::unique_ptr<Command> MakeTokenizeCommand();
std::unique_ptr<Command> MakeSessionCommand();
std::unique_ptr<Command> MakeTokenCommand();

// Cancels all calls if standard output cannot be written.
void CancelUnlessWritable(const CommandContext& context);

// Makes the client of a command. RunProgram holds it until the command ends.
using ClientFactory = std::function<std::shared_ptr<Client>(const Client::Options&)>;

// Runs one command line (without the program's name).
ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client);

}  // namespace longshort::client
