// Who asks, how urgently, and whether somebody still waits for the answer.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/ticket.h"

namespace longshort::core {

// Set by any thread when nobody waits for the answer any more; the engine looks before every step.
using CancellationFlag = std::atomic<bool>;

// Set while the client takes nothing of what waits for it: the engine leaves the request's sequences out of its steps
// until it is cleared.
using PauseFlag = std::atomic<bool>;

// What all requests have.
struct RequestContext {
  // For the logs.
  std::string id;
  // Who asks, as far as fairness goes: clients share the engine's time. "" is everybody who did not say.
  std::string client;
  Priority priority = Priority::kNormal;
  // Of the call.
  CallPart part = {};
  // When the client stops waiting.
  absl::Time deadline = absl::InfiniteFuture();
  std::shared_ptr<CancellationFlag> cancelled = std::make_shared<CancellationFlag>(false);
  std::shared_ptr<PauseFlag> paused = std::make_shared<PauseFlag>(false);
};

// OK while somebody waits for the result at `now`. `started`: whether it runs already, for the message.
// Errors: CANCELLED, DEADLINE_EXCEEDED; then the request should be ended with it.
inline absl::Status WhyAbandoned(const RequestContext& context, absl::Time now, bool started) {
  if (context.cancelled->load(std::memory_order_relaxed)) return absl::CancelledError("the client cancelled");
  if (now < context.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(started ? "the deadline passed while the request was running"
                                             : "the deadline passed while the request waited in the queue");
}

// UNAVAILABLE: the error of requests that come, or are left, when an engine or the server ends.
inline absl::Status ServerIsStopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace longshort::core
