// A request on its way through the engine: what it reads next, and what it does with the logits.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/budget.h"
#include "core/cache/parked_place.h"
#include "core/cache/prefix_index.h"
#include "core/requests/request_context.h"
#include "core/requests/request_times.h"
#include "core/requests/token_stream.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/stream_estimator.h"
#include "core/schedule/ticket.h"
#include "core/session/session_pages.h"
#include "core/session/session_store.h"

namespace longshort {

class PagedCache;

// A job keeps all tokens of its stream, so that it can go on with any worker. What it reads and does with the logits is
// the subclasses'. The fields are notes of those who have the job, the queue and the step loop: a job does not act on
// them, but for GiveBack and GiveUpParked.
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
  virtual int64_t MostTokens() const = 0;
  // How many of the stream's first tokens need not be read if their rows are in the cache: nothing of their logits is
  // wanted any more.
  virtual int64_t MostReused() const = 0;
  // A sequence begins to work for this job, for the first time or again, behind the first `position` tokens; it found
  // the rows of `reused` of them in the cache, the others' do not matter any more. REQUIRES: position <= MostReused().
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

  // Gives back its session and its part of the token budget: its client may use both as soon as it hears the end. And
  // what it has parked, with whatever worker.
  void GiveBack();
  // It has begun somewhere, and needs what it had parked no more.
  void GiveUpParked();
  // Tells the listener how it ended: OK only if complete. REQUIRES: called once, last.
  virtual void Finish(const absl::Status& status, absl::Time now) = 0;

  // Whether its client takes nothing of what waits for it, so that more need not be computed.
  bool paused() const { return context().paused->load(std::memory_order_relaxed); }
  // OK while somebody waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED; then the job should be finished with
  // it.
  absl::Status WhyAbandoned(absl::Time now) const;

  RequestTimes times;
  Budget::Share held_tokens;
  // Set when it is taken from the queue: which one it was, and its place in the order of work until it is settled.
  int64_t number = 0;
  std::optional<Ticket> charge;
  // The worker that took it last.
  int worker = 0;
  // What it took of the worker's time so far, and what it took besides: to read again what it had read, and in steps
  // that failed.
  StreamTime worker_time;
  absl::Duration overhead;
  // Where rows of the stream's tokens may be found: its session's, or its own since it was paused.
  std::optional<ParkedPlace> parked;
  // Whether it stood aside for those behind it, the last time that the worker which has those rows could have taken it.
  bool stood_aside_at_home = false;
  // Whether those are its own: nobody else wants them when it has ended.
  bool parked_itself = false;
  // The caches that such a place may be in; null if nobody needs to hear of it.
  std::shared_ptr<SessionPages> pages;
  // What each worker's cache had of the stream's tokens while it waited: for those who ask, one at a time.
  mutable std::map<const PagedCache*, PrefixSearch> searches;
  // The session that it goes on with, if it does.
  std::optional<SessionStore::Lease> session;
  // Steps of the model that failed with it.
  WorkFailures failures{WorkFailures::kOfSequence};

 protected:
  explicit Job(TokenStream stream) : stream_(std::move(stream)) {}

  // Of the stream's tokens, found in the cache when work on this job first began, or since.
  int64_t reused_tokens() const { return reused_tokens_.value_or(0); }

  TokenStream stream_;

 private:
  std::optional<int64_t> reused_tokens_;
};

}  // namespace longshort
