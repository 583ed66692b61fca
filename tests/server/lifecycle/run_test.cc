#include "server/lifecycle/run.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

// Sends SIGTERM to this process and returns once the watcher's thread has taken it.
void StopAndWaitUntilTaken() {
  kill(getpid(), SIGTERM);
  sigset_t pending;
  do {
    absl::SleepFor(absl::Milliseconds(50));
    sigpending(&pending);
  } while (sigismember(&pending, SIGTERM) == 1);
  absl::SleepFor(absl::Milliseconds(50));
}

TEST(RunServer, ExitsWithZeroAndWithoutServingWhenToldToStopWhileItLoads) {
  const std::string repository = absl::StrCat(testing::TempDir(), "/stopped-while-loading-", getpid());
  std::filesystem::create_directories(repository + "/model/1");
  const std::string port_file = repository + "/ports.json";
  const auto make_loader = [](const ServerOptions&) -> ModelRegistry::Loader {
    return [](const std::string&) -> absl::StatusOr<LoadedModel> {
      StopAndWaitUntilTaken();
      return absl::InternalError("what was loaded is not looked at");
    };
  };
  EXPECT_EQ(RunServer({"--model-repository=" + repository, "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                       "--port-file=" + port_file},
                      make_loader),
            0);
  EXPECT_FALSE(std::filesystem::exists(port_file));
  std::filesystem::remove_all(repository);
}

}  // namespace
}  // namespace longshort
