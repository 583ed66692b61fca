// The process around RunProgram: standard streams, Ctrl-C, exit code.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clients/cpp/interrupt.h"
#include "clients/cpp/program.h"

int main(int argc, char** argv) {
  using longshort::Client;
  std::ios::sync_with_stdio(false);
  // Documents are read and results written by two threads, and a tie would have the one write what the other does.
  std::cin.tie(nullptr);
  std::cerr.tie(nullptr);
  std::mutex mutex;
  std::shared_ptr<Client> client;  // guarded by mutex

  // Cancels the running calls, which then end with CANCELLED; if there is none, the program waits for input: leave at
  // once, as at the second Ctrl-C.
  bool interrupted = false;  // the watcher's thread only
  const longshort::InterruptWatcher watcher([&] {
    const std::lock_guard lock(mutex);
    if (interrupted || client == nullptr || !client->Cancel()) {
      std::_Exit(static_cast<int>(longshort::ExitCode::kCancelled));
    }
    interrupted = true;
  });

  longshort::Terminal terminal{std::cin,
                               std::cout,
                               std::cerr,
                               isatty(STDIN_FILENO) == 1,
                               isatty(STDERR_FILENO) == 1,
                               isatty(STDOUT_FILENO) == 1};
  const longshort::ExitCode code = longshort::RunProgram(std::vector<std::string>(argv + 1, argv + argc), terminal,
                                                         [&](const Client::Options& options) {
                                                           const std::lock_guard lock(mutex);
                                                           return client = std::make_shared<Client>(options);
                                                         });
  std::cout << std::flush;
  if (!std::cout) {  // a full disk, for instance: what was asked for did not arrive, whatever the server said
    std::cerr << "longshort: standard output cannot be written\n";
    return static_cast<int>(longshort::ExitCode::kOther);
  }
  return static_cast<int>(code);
}
