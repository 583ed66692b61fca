#include "tools/load/load_run.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tools/load/summary.h"

namespace longshort::load::load_run_test {

// Scores nothing: refuses every third call; holds calls for a model named "silent" until they are cancelled.
class ScriptedService final : public v1::Inference::CallbackService {
 public:
  grpc::ServerUnaryReactor* ScoreText(grpc::CallbackServerContext* context, const v1::ScoreTextRequest* request,
                                      v1::ScoreTextResponse* /*response*/) override {
    class Silence final : public grpc::ServerUnaryReactor {
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    if (request->model().name() == "silent") return new Silence();
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool refuse = ++calls_ % 3 == 0;
    reactor->Finish(refuse ? grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full") : grpc::Status::OK);
    return reactor;
  }

  int64_t calls() const { return calls_; }

 private:
  std::atomic<int64_t> calls_ = 0;
};

class LoadRunTest : public testing::Test {
 protected:
  LoadRunTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channels_ = {server_->InProcessChannel({})};
    // The first test's channel stays, and with it gRPC's queue of callbacks: with the address sanitizer, the end of
    // that queue is now and then a double free (grpc_cq_internal_unref of gRPC 1.51).
    [[maybe_unused]] static const auto& first = *new std::vector(channels_);
  }

  RunResult Run(const std::string& workload, const RunOptions& options) {
    return *RunLoad(channels_, {*ParseWorkload(workload)}, options);
  }

  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

TEST_F(LoadRunTest, AClosedLoopSendsAllRequestsOnceAndKeepsEveryOutcome) {
  const RunResult result = Run("score,concurrency=4,requests=300", {.warm_up = absl::ZeroDuration()});
  ASSERT_EQ(result.outcomes.size(), 1);
  const Summary summary = Summarise(result.outcomes[0], result.begin, result.end, {});
  EXPECT_EQ(service_.calls(), 300);
  EXPECT_EQ(result.outcomes[0].size(), 300);
  EXPECT_EQ(summary.refused, 100);
  // The last call's end closes the window, so that nothing but it is left out of the rates.
  EXPECT_LT(result.end, absl::Seconds(10));
}

TEST_F(LoadRunTest, AnOpenLoopSendsAtThePlannedTimesWhateverIsUnanswered) {
  const RunResult result =
      Run("score,model=silent,rate=1000,requests=50",
          {.warm_up = absl::ZeroDuration(), .measured = absl::Seconds(1), .grace = absl::ZeroDuration()});
  ASSERT_EQ(result.outcomes[0].size(), 50);
  for (const CallOutcome& outcome : result.outcomes[0]) {
    EXPECT_TRUE(outcome.cut_off);
    EXPECT_GE(outcome.sent, outcome.planned);
    EXPECT_LT(outcome.planned, absl::Seconds(1));
  }
}

TEST_F(LoadRunTest, ADeadlineIsACallsOwn) {
  const RunResult result = Run("score,model=silent,deadline=20ms,requests=2", {.warm_up = absl::ZeroDuration()});
  ASSERT_EQ(result.outcomes[0].size(), 2);
  EXPECT_EQ(result.outcomes[0][0].code, grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(result.outcomes[0][0].cut_off);
}

TEST_F(LoadRunTest, RunsEndWithTheirTime) {
  const RunResult result =
      Run("score,concurrency=2", {.warm_up = absl::Milliseconds(50), .measured = absl::Milliseconds(500)});
  EXPECT_EQ(result.begin, absl::Milliseconds(50));
  EXPECT_EQ(result.end, absl::Milliseconds(550));
  EXPECT_GT(result.outcomes[0].size(), 2);
}

}  // namespace longshort::load::load_run_test
