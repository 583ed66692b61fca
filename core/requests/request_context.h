// The client of a request, its priority and deadline, and whether the client still waits for the answer.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/work_attributes.h"

namespace longshort::core {

// Any thread sets it when the client no longer waits for the answer; the engine checks it before each step.
using CancellationFlag = std::atomic<bool>;

// Set while the client does not read its answers: the engine leaves the request's sequences out of its steps until it
// is cleared.
using PauseFlag = std::atomic<bool>;

// The context of any request.
struct RequestContext {
  // For the logs.
  std::string id;
  // Clients share the engine's time fairly. "" stands for all clients without an id.
  std::string client;
  Priority priority = Priority::kNormal;
  // The request's position among the requests of its call.
  PositionInCall position_in_call = {};
  // When the client stops waiting.
  absl::Time deadline = absl::InfiniteFuture();
  std::shared_ptr<CancellationFlag> cancelled = std::make_shared<CancellationFlag>(false);
  std::shared_ptr<PauseFlag> paused = std::make_shared<PauseFlag>(false);
};

// OK while the client waits for the result at `now`. `started`: whether the request is running, for the message.
// Errors: CANCELLED, DEADLINE_EXCEEDED; then the request should end with that error.
inline absl::Status CheckNotAbandoned(const RequestContext& context, absl::Time now, bool started) {
  if (context.cancelled->load(std::memory_order_relaxed)) return absl::CancelledError("the client cancelled");
  if (now < context.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(started ? "the deadline passed while the request was running"
                                             : "the deadline passed while the request waited in the queue");
}

// UNAVAILABLE: the error of requests that arrive, or are not finished, when an engine or the server shuts down.
inline absl::Status ServerIsStopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace longshort::core
