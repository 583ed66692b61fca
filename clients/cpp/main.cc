// main: connects RunProgram to the standard streams, Ctrl-C and the exit code.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "clients/cpp/command.h"
#include "clients/cpp/terminal.h"

namespace {

// Time to write the results that arrived before Ctrl-C.
constexpr absl::Duration kLastResults = absl::Seconds(2);

struct RunningClient {
  longshort::Mutex mutex;
  std::shared_ptr<longshort::client::Client> client ABSL_GUARDED_BY(mutex);  // null until a command runs
};

}  // namespace

int main(int argc, char** argv) {
  using longshort::client::Client;
  std::ios::sync_with_stdio(false);
  // One thread reads documents and another writes results: a tied stream would flush the other thread's output.
  std::cerr.tie(nullptr);
  RunningClient running;

  // Cancels the running calls. Exits if there are none, or if the program does not end in time: then it is blocked
  // reading input.
  absl::Notification ended;
  const longshort::client::InterruptWatcher watcher([&] {
    bool cancelled = false;
    {
      const longshort::MutexLock lock(running.mutex);
      cancelled = running.client != nullptr && running.client->Cancel();
    }
    if (!cancelled || !ended.WaitForNotificationWithTimeout(kLastResults)) {
      std::_Exit(static_cast<int>(longshort::client::ExitCode::kCancelled));
    }
  });

  longshort::client::StoppableInput standard_input(STDIN_FILENO);
  std::istream input(&standard_input);
  longshort::client::LineOutput standard_output(STDOUT_FILENO);
  std::ostream output(&standard_output);
  longshort::client::Terminal terminal{.input = input,
                                       .output = output,
                                       .error = std::cerr,
                                       .input_is_terminal = isatty(STDIN_FILENO) == 1,
                                       .error_is_terminal = isatty(STDERR_FILENO) == 1,
                                       .output_is_terminal = isatty(STDOUT_FILENO) == 1,
                                       .stop_input = [&] { standard_input.Stop(); }};
  const longshort::client::ExitCode code = longshort::client::RunProgram(
      std::vector<std::string>(argv + 1, argv + argc), terminal, [&](const Client::Options& options) {
        const longshort::MutexLock lock(running.mutex);
        return running.client = std::make_shared<Client>(options);
      });
  output << std::flush;
  ended.Notify();
  if (!output) {  // such as a full disk: the output is incomplete even if all calls succeeded
    std::cerr << "longshort: standard output cannot be written: " << std::strerror(standard_output.error()) << "\n";
    return static_cast<int>(longshort::client::ExitCode::kOther);
  }
  return static_cast<int>(code);
}
