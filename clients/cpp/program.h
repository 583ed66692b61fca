// The program `longshort`, without the process around it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "clients/cpp/client.h"
#include "clients/cpp/exit_code.h"
#include "clients/cpp/terminal.h"

namespace longshort {

// Makes a client that a command uses, one for each server; RunProgram keeps it until the command has ended.
using ClientFactory = std::function<std::shared_ptr<Client>(const Client::Options&)>;

// Runs one command line (without the program's name).
ExitCode RunProgram(absl::Span<const std::string> arguments, Terminal& terminal, const ClientFactory& make_client);

}  // namespace longshort
