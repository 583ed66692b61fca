// The program `longshort` without the process around it: its commands, and what they share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/option_table.h"
#include "clients/cpp/client.h"
#include "clients/cpp/connection_options.h"
#include "clients/cpp/failures.h"
#include "clients/cpp/terminal.h"

namespace longshort {

// Options of every command.
struct CommonOptions {
  ConnectionOptions connection;
  // name or name/version; empty for the only model.
  std::string model;
  absl::Duration timeout = absl::InfiniteDuration();
  std::string client_id;
  // One JSON object a line instead of what a person reads.
  bool json = false;
};

// What a command works with. All outlive it.
struct CommandContext {
  const CommonOptions& options;
  // From --model.
  const v1::ModelSelector& model;
  Client& client;
  Terminal& terminal;
};

class Command {
 public:
  virtual ~Command() = default;

  virtual absl::string_view name() const = 0;
  // One line.
  virtual absl::string_view summary() const = 0;
  // For --help: how to call it, what it does, examples.
  virtual absl::string_view description() const = 0;
  virtual void AddOptions(OptionTable& table) = 0;
  // `arguments` are those that are no options. Errors were told to context.terminal.error.
  virtual ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) = 0;
};

std::unique_ptr<Command> MakeClassifyCommand();
std::unique_ptr<Command> MakeScoreCommand();
std::unique_ptr<Command> MakeGenerateCommand();
std::unique_ptr<Command> MakeModelsCommand();
std::unique_ptr<Command> MakeReadyCommand();
std::unique_ptr<Command> MakeTokenizeCommand();
std::unique_ptr<Command> MakeSessionCommand();
std::unique_ptr<Command> MakeTokenCommand();

// "name" or "name/version" as a selector. Errors: INVALID_ARGUMENT.
absl::StatusOr<v1::ModelSelector> ParseModel(const std::string& text);

// Tells what is wrong with the command line or a file; returns kUsage.
ExitCode FailUsage(Terminal& terminal, absl::string_view message);

// Ends the calls whose results nobody can read any more: standard output cannot be written.
void CancelUnlessWritable(const CommandContext& context);

// Tells what the server or the connection answered, with the cause if no connection came about; returns
// ExitCodeOf(status).
ExitCode FailCall(const CommandContext& context, const absl::Status& status);

// Makes the client that a command uses; RunProgram keeps it until the command has ended.
using ClientFactory = std::function<std::shared_ptr<Client>(const Client::Options&)>;

// Runs one command line (without the program's name).
ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client);

}  // namespace longshort
