#include "server/lifecycle/run.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "tests/core/fakes/end_signal.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::server::run_test {

using Workers = std::vector<models::WorkerDevice>;

namespace fs = std::filesystem;

// Waits until the loading was asked to stop, because of a SIGTERM that was sent.
bool WaitUntilStopped(const models::LoadGuard& guard) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!guard.stop_requested() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  return guard.stop_requested();
}

bool StopAndWaitUntilStopped(const models::LoadGuard& guard) {
  kill(getpid(), SIGTERM);
  return WaitUntilStopped(guard);
}

// A server of one model, whose versions this process loads.
class RunServerTest : public testing::Test {
 protected:
  RunServerTest() { AddVersion(1); }
  ~RunServerTest() override { fs::remove_all(repository_); }

  int Run(const GuardedLoader& loader, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"--model-repository=" + repository_.string(), "--listen=127.0.0.1:0",
                                          "--http-listen=127.0.0.1:0", "--port-file=" + port_file_.string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunServer(arguments, [&loader](const ServerOptions&) { return loader; });
  }

  void AddVersion(int version) { fs::create_directories(repository_ / "model" / absl::StrCat(version)); }

  // One that takes minutes for 100 000 tokens.
  static models::LoadedModel Model() {
    auto model = std::make_unique<core::FakeLanguageModel>(core::SmallModelInfoWithRealPages());
    model->on_step = [](absl::Span<const models::Slice>) {
      absl::SleepFor(absl::Milliseconds(1));
      return absl::OkStatus();
    };
    return models::LoadedLanguageModel{.weights = core::WeightsOf(std::move(model)), .tokenizer = nullptr};
  }

  // Waits until the server is ready.
  std::unique_ptr<v1::Inference::Stub> Connect() const {
    while (!fs::exists(port_file_)) absl::SleepFor(absl::Milliseconds(10));
    std::ifstream file(port_file_);
    const int port = nlohmann::json::parse(file).at("grpc").get<int>();
    return v1::Inference::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }

  const fs::path repository_ = fs::path(testing::TempDir()) / absl::StrCat("run-server-", getpid());
  const fs::path port_file_ = repository_ / "ports.json";
};

TEST_F(RunServerTest, ExitsWithZeroWhenStoppedWhileItLoads) {
  const auto loader = [](const std::string&, const Workers&,
                         const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    EXPECT_TRUE(StopAndWaitUntilStopped(guard));
    return absl::InternalError("what was loaded is not looked at");
  };
  EXPECT_EQ(Run(loader), 0);
  EXPECT_FALSE(fs::exists(port_file_));
}

// Libraries create threads before main, which do not block the signals.
TEST_F(RunServerTest, ASignalThatALibrarysThreadReceivesStopsTheServer) {
  absl::Notification unblocked, end;
  std::thread library([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
    unblocked.Notify();
    end.WaitForNotification();
  });
  unblocked.WaitForNotification();
  const auto loader = [&](const std::string&, const Workers&,
                          const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    pthread_kill(library.native_handle(), SIGTERM);
    EXPECT_TRUE(WaitUntilStopped(guard));
    return absl::InternalError("what was loaded is not looked at");
  };
  EXPECT_EQ(Run(loader), 0);
  end.Notify();
  library.join();
}

TEST_F(RunServerTest, ACheckOfTheConfigurationThatIsStoppedIsAnError) {
  const auto loader = [](const std::string&, const Workers&,
                         const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    EXPECT_TRUE(StopAndWaitUntilStopped(guard));
    return Model();
  };
  EXPECT_EQ(Run(loader, {"--check-config"}), 1);
}

// With them, gRPC aborts the process for a connection that sends 2 GiB without ever being read empty.
TEST_F(RunServerTest, SwitchesChunkedReadsOffUnlessTheOperatorSaysOtherwise) {
  const auto loader = [](const std::string&, const Workers&,
                         const models::LoadGuard&) -> absl::StatusOr<models::LoadedModel> { return Model(); };
  for (const auto& [before, after] : {std::pair("", "-tcp_read_chunks"), std::pair("a", "a,-tcp_read_chunks"),
                                      std::pair("tcp_read_chunks", "tcp_read_chunks")}) {
    setenv("GRPC_EXPERIMENTS", before, 1);
    EXPECT_EQ(Run(loader, {"--check-config"}), 0);
    EXPECT_STREQ(getenv("GRPC_EXPERIMENTS"), after);
  }
  unsetenv("GRPC_EXPERIMENTS");
}

TEST_F(RunServerTest, LoadsNothingOnceStopped) {
  std::vector<std::string> loaded;
  const auto loader = [&](const std::string& directory, const Workers&,
                          const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    loaded.push_back(fs::path(directory).filename().string());
    if (loaded.size() == 1) {
      AddVersion(2);
      AddVersion(3);
    } else if (loaded.size() == 2) {
      EXPECT_TRUE(StopAndWaitUntilStopped(guard));
    }
    return Model();
  };
  EXPECT_EQ(Run(loader, {"--watch-repository=100ms"}), 0);
  EXPECT_THAT(loaded, testing::ElementsAre("1", "3"));
}

TEST_F(RunServerTest, StoppingEndsALoadInProgress) {
  bool stopped_before = true, stopped = false;
  const auto loader = [&](const std::string&, const Workers&,
                          const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    stopped_before = guard.stop_requested();
    stopped = StopAndWaitUntilStopped(guard);
    return absl::CancelledError("as requested");
  };
  EXPECT_EQ(Run(loader), 0);
  EXPECT_FALSE(stopped_before);
  EXPECT_TRUE(stopped);
}

// A loader that does not ask whether it is to stop.
TEST_F(RunServerTest, CallsInFlightEndAtTheDrainsDeadlineWhateverIsBeingLoaded) {
  core::EndSignal ended;
  const auto call = [&] {
    v1::GenerateRequest request;
    request.mutable_prompt()->mutable_ids()->add_ids(1);
    request.set_max_tokens(100'000);
    grpc::ClientContext context;
    const auto reader = Connect()->GenerateStream(&context, request);
    v1::GenerateStreamResponse event;
    while (reader->Read(&event) && !event.has_delta()) continue;
    AddVersion(2);
    while (reader->Read(&event)) continue;
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    ended.Notify();
  };
  std::future<void> client;
  const auto loader = [&](const std::string& directory, const Workers&,
                          const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    if (fs::path(directory).filename() == "1") {
      client = std::async(std::launch::async, call);  // here, so that its thread does not take the signal
      return Model();
    }
    EXPECT_TRUE(StopAndWaitUntilStopped(guard));
    EXPECT_TRUE(ended.Wait());
    return Model();
  };
  EXPECT_EQ(Run(loader, {"--watch-repository=100ms", "--drain-timeout=0s", "--max-generate-tokens=100000"}), 0);
}

}  // namespace longshort::server::run_test
