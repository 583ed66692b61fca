// A request on its way through the engine: what it reads next, and what it does with the logits.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/engine/request.h"
#include "core/engine/request_times.h"
#include "core/engine/token_budget.h"

namespace longshort {

// Made by the caller's thread, then used by the engine's thread only. Knows nothing of pages, queues and other
// requests.
//
//   while (!complete()) { read the first n of Unread(); OnRead(n, logits of the last LogitRows(n)); }
//   Finish(...)
class Job {
 public:
  virtual ~Job() = default;

  virtual const RequestContext& context() const = 0;

  // Tokens of the prompt or document, which this job keeps until it is destroyed.
  virtual int64_t prompt_tokens() const = 0;

  // Tokens that this job reads at the most, all steps together; those that it reuses included.
  virtual int64_t MostTokens() const = 0;
  // How many of the first tokens need not be read if their rows are in the cache: nothing of their logits is wanted.
  virtual int64_t MostReused() const = 0;
  // The first `count` tokens need not be read. REQUIRES: nothing was read yet; count <= MostReused().
  virtual void OnReused(int64_t count) = 0;
  // The tokens that are known and not read yet: the rest of the prompt, or the token sampled last. Empty when complete.
  virtual absl::Span<const int32_t> Unread() const = 0;
  // Whether all that is unread is one sampled token.
  virtual bool decoding() const = 0;
  // How many logit rows it wants at the end of a piece of the first `count` unread tokens.
  virtual int64_t LogitRows(int64_t count) const = 0;

  // The first `count` unread tokens were read; `logits` is [LogitRows(count), V]. May call the listener.
  // Errors: INTERNAL if the logits are unusable; the job must then be finished with that error.
  virtual absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) = 0;
  // Whether it has all it wanted: Finish(OK) is due.
  virtual bool complete() const = 0;

  // Tells the listener how it ended: OK only if complete. REQUIRES: called once, last.
  virtual void Finish(const absl::Status& status, absl::Time now) = 0;

  // OK while somebody waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED; then the job should be finished with
  // it.
  absl::Status WhyAbandoned(absl::Time now) const;

  RequestTimes times;
  TokenBudget::Share held_tokens;
};

}  // namespace longshort
