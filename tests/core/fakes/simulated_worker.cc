#include "tests/core/fakes/simulated_worker.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace longshort::core {
namespace {

// How often a worker checks whether a client cancelled, or whether it can make a model again: no event reports either.
// The real worker checks more often, which only takes time here.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

}  // namespace

SimulatedWorker::SimulatedWorker(const models::LanguageModelWeights& weights, RequestQueue& queue,
                                 SessionStore& sessions, const Clock& clock, WorkerStates& states,
                                 const StepLoop::Options& options)
    : queue_(queue),
      clock_(clock),
      number_(options.worker),
      replica_(new LanguageModelReplica(weights, queue, sessions, clock, states, {.step_loop = options})),
      worker_(number_, std::unique_ptr<ModelRunner>(replica_), queue, clock),
      coroutine_([this] { Work(); }) {
  const absl::Status built = worker_.Build();
  EXPECT_TRUE(built.ok()) << built;
}

void SimulatedWorker::StayInStep(absl::Duration step) {
  in_step_ = true;
  next_ = clock_.Now() + step;
  coroutine_.Pause();
  in_step_ = false;
}

void SimulatedWorker::Work() {
  while (true) {
    changes_seen_ = queue_.changes();
    looked_ = clock_.Now();
    for (const ParkedId parked : std::exchange(to_remove_, {})) {
      if (replica_->cache() != nullptr) replica_->cache()->RemoveParked(parked);
    }
    if (worker_.RunRound() == absl::InfinitePast()) continue;
    if (queue_.over()) break;
    const bool waits = !queue_.empty() || replica_->cache() == nullptr;
    next_ = waits ? clock_.Now() + kPollInterval : absl::InfiniteFuture();
    coroutine_.Pause();
  }
}

}  // namespace longshort::core
