// A request on its way through the engine: what it reads next, and what it does with the logits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/budget.h"
#include "core/cache/parked_pages.h"
#include "core/cache/prefix_index.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "core/requests/token_stream.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/stream_estimator.h"
#include "core/schedule/ticket.h"
#include "core/session/session.h"
#include "core/session/session_store.h"

namespace longshort::core {

// Where the rows of a job's tokens are in the workers' caches while no sequence runs for it. They belong to its
// session, which frees them, or, after a pause, to the job, which frees them when it ends.
//
// Thread: the one that has the job.
class SeatInCache final {
 public:
  // `of_session`: where its session's rows are. `caches`: those that a place may be in; null if nobody frees pages.
  explicit SeatInCache(const std::optional<ParkedPlace>& of_session = std::nullopt,
                       std::shared_ptr<SessionPages> caches = nullptr)
      : place_(of_session), caches_(std::move(caches)) {}

  const std::optional<ParkedPlace>& place() const { return place_; }
  bool IsWith(int worker) const { return place_.has_value() && place_->worker == worker; }

  // The job was paused, and its own rows are parked there.
  void ParkOwn(const ParkedPlace& place) {
    place_ = place;
    is_own_ = true;
  }
  // Where its own rows are, if this worker has them and frees them now.
  std::optional<ParkedId> TakeOwn(int worker);
  // The job began somewhere, or ended: its own rows are freed, whatever worker has them.
  void Leave();

  // The last search of the worker's cache for the job's tokens. `cache` is PagedCache::id(). The search of a worker
  // whose cache was replaced starts empty.
  PrefixSearch& SearchIn(int worker, uint64_t cache) const;

 private:
  struct Search {
    uint64_t cache = 0;  // none
    PrefixSearch last;
  };

  std::optional<ParkedPlace> place_;
  bool is_own_ = false;
  std::shared_ptr<SessionPages> caches_;
  mutable std::vector<Search> searches_;  // [workers] as far as they have searched
};

// A job's place in its engine's queue. Only RequestQueue writes it.
class QueueEntry {
 public:
  // Which one it was of those taken from the queue: jobs run in this order.
  int64_t number() const { return number_; }
  // Its place in the order of work. REQUIRES: the job was taken, and is not settled.
  const Ticket& ticket() const { return *ticket_; }

 private:
  friend class RequestQueue;

  int64_t number_ = 0;
  std::optional<Ticket> ticket_;
  int worker_ = 0;  // that took it last
  // Whether the worker that has its rows, when it last could have taken the job, skipped it.
  bool skipped_at_home_ = false;
};

// What the model's steps did for a job.
struct StepRecord {
  // What it took of the worker's time, and what it took besides: to read again what it had read, and in steps that
  // failed.
  StreamTime worker_time;
  absl::Duration overhead;
  WorkFailures failures{WorkFailures::kOfSequence};
};

// What a job holds until it ends.
struct JobHoldings {
  std::optional<SessionStore::Lease> session;  // that it goes on with
  Budget::Share tokens;
};

// A job keeps all tokens of its stream, so that it can go on with any worker. What it reads and does with the logits is
// the subclasses'.
//
// Thread: the caller's makes it, then one engine's thread at a time has it.
//
//   while (!complete()) { read the first n of Unread(); OnRead(n, logits of the last LogitRows(n)); }
//   Finish(...)
class Job {
 public:
  virtual ~Job() = default;

  virtual const RequestContext& context() const = 0;

  const TokenStream& stream() const { return stream_; }
  // Tokens of the prompt or document, without what a session had before.
  int64_t prompt_tokens() const { return stream_.given_end() - stream_.given_begin(); }

  // The stream's tokens that will have been read at the most, its history's included.
  virtual int64_t MaxTokens() const = 0;
  // How many of the stream's first tokens need not be read if their rows are in the cache: nothing of their logits is
  // wanted any more.
  virtual int64_t MaxReused() const = 0;
  // A sequence begins to work for this job, for the first time or again, behind the first `position` tokens; it found
  // the rows of `reused` of them in the cache, the others' do not matter any more. REQUIRES: position <= MaxReused().
  void OnBegun(int64_t position, int64_t reused);
  // The cache has the rows of the first `position` tokens now: others read them. REQUIRES: as OnBegun.
  void OnSkipped(int64_t position);
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
  // How many of the stream's tokens a session has when this job is complete.
  virtual int64_t SessionTokens() const = 0;

  // Gives back what it holds, of which its client may use the session and the tokens as soon as it hears the end; and
  // what it has parked.
  void GiveBack();
  // Tells the listener how it ended: OK only if complete. REQUIRES: called once, last.
  virtual void Finish(const absl::Status& status, absl::Time now) = 0;

  // Whether its client takes nothing of what waits for it, so that more need not be computed.
  bool paused() const { return context().paused->load(std::memory_order_relaxed); }
  // OK while somebody waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED; then the job should be finished with
  // it.
  absl::Status WhyAbandoned(absl::Time now) const;

  // Each is written by the one that it names, and read by all who have the job.
  RequestTimes times;    // the engine, the step loop and the job
  QueueEntry entry;      // RequestQueue
  SeatInCache seat;      // the step loop, after the job was made
  StepRecord steps;      // the step loop
  JobHoldings holdings;  // who makes the job

 protected:
  explicit Job(TokenStream stream) : stream_(std::move(stream)) {}

  // Of the stream's tokens, found in the cache when work on this job first began, or since.
  int64_t reused_tokens() const { return reused_tokens_.value_or(0); }

  TokenStream stream_;

 private:
  std::optional<int64_t> reused_tokens_;
};

}  // namespace longshort::core
