// Makes jobs for tests of the queue's parts.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/requests/language_model_jobs.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort::core {

class ScoringJobs final {
 public:
  explicit ScoringJobs(const FakeClock& clock) : clock_(clock) {}

  std::unique_ptr<Job> Make(const std::string& client, Priority priority = Priority::kNormal, int64_t tokens = 2) {
    ScoringRequest request;
    request.context.client = client;
    request.context.priority = priority;
    request.tokens.assign(tokens, 1);
    auto job = std::make_unique<ScoringJob>(std::move(request), listener_, 10, observer_);
    job->times.submitted = clock_.Now();
    return job;
  }

 private:
  const FakeClock& clock_;
  const std::shared_ptr<RecordingScoringListener> listener_ = std::make_shared<RecordingScoringListener>();
  RecordingObserver observer_;
};

}  // namespace longshort::core
