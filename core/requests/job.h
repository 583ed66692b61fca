// A request inside the engine: which tokens it reads next, and what it does with their logits.
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
#include "core/cache/cache_grid.h"
#include "core/cache/prefix_index.h"
#include "core/requests/language_model_requests.h"
#include "core/requests/request_context.h"
#include "core/schedule/estimators.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/work_attributes.h"
#include "core/session/session.h"
#include "core/session/session_store.h"

namespace longshort::core {

// The tokens of a job's stream, by stream position: its history, the tokens of the request, and the generated ones.
//
//   0 ........ own_begin ........ given_end ........ end
//     history         given             generated
//             ^ with a history, its last token, which the model has not read yet
//
// The rows of all tokens before `read` are in the cache, or can be computed again from here.
//
// The history is the session's until a function returns tokens: so it is copied once, by a worker, and not by the
// thread that makes the job. Any thread that may read the job may call the functions that return counts.
class TokenStream final {
 public:
  static constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

  // If `history` is empty, `given` is not.
  TokenStream(SharedTokens history, std::vector<int32_t> given)
      : given_begin_(static_cast<int64_t>(history.tokens.size())),
        given_end_(given_begin_ + static_cast<int64_t>(given.size())),
        end_(given_end_),
        read_(own_begin()),
        capacity_(given_begin_ + static_cast<int64_t>(given.capacity())),
        history_(std::move(history)),
        tokens_(std::move(given)) {}

  int64_t own_begin() const { return given_begin_ == 0 ? 0 : given_begin_ - 1; }
  int64_t given_begin() const { return given_begin_; }
  int64_t given_end() const { return given_end_; }
  int64_t end() const { return end_; }
  int64_t read() const { return read_; }
  // The tokens that its memory has room for, or will have with the history.
  int64_t capacity() const { return capacity_; }

  // Thread: the one that owns the job, or searches for it (QueueEntry::is_searched).
  int32_t operator[](int64_t position) const { return all()[position]; }
  const std::vector<int32_t>& all() const {
    if (!history_.tokens.empty()) Join();
    return tokens_;
  }
  absl::Span<const int32_t> Unread() const { return absl::MakeConstSpan(all()).subspan(read_); }

  void Append(int32_t token) {
    if (!history_.tokens.empty()) Join();
    tokens_.push_back(token);
    ++end_;
    capacity_ = static_cast<int64_t>(tokens_.capacity());
  }
  void MarkReadUntil(int64_t position) { read_ = position; }

 private:
  void Join() const {
    std::vector<int32_t> joined;
    joined.reserve(capacity_);
    joined.assign(history_.tokens.begin(), history_.tokens.end());
    joined.insert(joined.end(), tokens_.begin(), tokens_.end());
    tokens_ = std::move(joined);
    history_ = {};
  }

  int64_t given_begin_;
  int64_t given_end_;
  int64_t end_;
  int64_t read_;
  int64_t capacity_;
  mutable SharedTokens history_;         // until Join
  mutable std::vector<int32_t> tokens_;  // behind the history; all of them after Join
};

// Where the rows of a job's tokens are in the workers' caches while no sequence runs for it. They belong to its
// session, or, after a pause, to the job itself, which frees them when it ends.
//
// Thread: the one that owns the job.
class ParkedRows final {
 public:
  // `of_session`: where its session's rows are. `caches`: frees the pages of a released place; null if nothing does.
  explicit ParkedRows(const std::optional<ParkedPlace>& of_session = std::nullopt,
                      std::shared_ptr<SessionPages> caches = nullptr)
      : place_(of_session), caches_(std::move(caches)) {}

  const std::optional<ParkedPlace>& place() const { return place_; }
  bool IsWith(int worker) const { return place_.has_value() && place_->worker == worker; }

  // The job was paused, and its own rows are parked at `place`.
  void ParkOwn(const ParkedPlace& place) {
    place_ = place;
    is_own_ = true;
  }
  // The place of its own rows, if this worker has them; the worker must free them.
  std::optional<ParkedId> TakeOwn(int worker);
  // The job started on some worker, or ended: frees its own rows, whichever worker has them.
  void Release();

  // The last search of the worker's cache for the job's tokens. `cache` is PagedCache::id(). After the worker's cache
  // was replaced, the search starts empty.
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

// A job's place in its engine's queue. Only the queue's classes write it.
class QueueEntry {
 public:
  // The position in the order in which jobs were taken from the queue: they run in this order.
  int64_t number() const { return number_; }
  // Its entry in the order of work. REQUIRES: the job was taken, and is not completed.
  const WorkAttributes& attributes() const { return *attributes_; }
  // Whether a worker searches its cache for the job's tokens, without the queue's lock: the job must stay in the queue.
  bool is_searched() const { return is_searched_; }

 private:
  friend class RequestQueue;
  friend class PendingJobs;
  friend class Placement;

  int64_t number_ = 0;
  std::optional<WorkAttributes> attributes_;
  absl::Duration charged_;  // worker time that was charged when it returned to the order of work
  int worker_ = 0;          // that took it last
  // Whether the worker that has its rows skipped it when it last could have taken the job.
  bool skipped_by_owner_ = false;
  mutable bool is_searched_ = false;
};

// The model's time and failures for a job.
struct StepRecord {
  // The worker time of its steps. `overhead` is additional: reading tokens again, and failed steps.
  StreamTime worker_time;
  absl::Duration overhead;
  WorkFailures failures{WorkFailures::kOfSequence};
};

// What a job owns until it ends.
struct JobResources {
  std::optional<SessionStore::Lease> session;  // that it continues
  Budget::Share tokens;                        // at least Job::HeldTokens(); empty for a job that no budget counts
};

// A job keeps all tokens of its stream, so that it can continue on any worker. The subclasses decide what it reads and
// what it does with the logits.
//
// Thread: the caller's thread creates it; after that one engine thread at a time owns it.
//
//   while (!complete()) { read the first n of Unread(); OnRead(n, logits of the last LogitRows(n)); }
//   Finish(...)
class Job {
 public:
  virtual ~Job() = default;

  virtual const RequestContext& context() const = 0;

  const TokenStream& stream() const { return stream_; }
  // Tokens of the prompt or document, without the session's history.
  int64_t prompt_tokens() const { return stream_.given_end() - stream_.given_begin(); }

  // What the stream and the options take now, as a number of tokens.
  int64_t HeldTokens() const {
    return stream_.capacity() + (OptionBytes() + TokenStream::kTokenBytes - 1) / TokenStream::kTokenBytes;
  }

  // The maximum number of tokens of the stream that will be read, including its history.
  virtual int64_t MaxTokens() const = 0;
  // How many of the stream's first tokens need not be read if their rows are in the cache, because their logits are not
  // needed.
  virtual int64_t MaxReused() const = 0;
  // A sequence starts to work for this job, for the first time or again, after the first `position` tokens. It found
  // the rows of `reused` of them in the cache. REQUIRES: position <= MaxReused().
  void OnBegun(int64_t position, int64_t reused);
  // The cache has the rows of the first `position` tokens now: other sequences read them. REQUIRES: as OnBegun.
  void OnSkipped(int64_t position);
  // The known tokens that were not read yet: the rest of the prompt, or the last sampled token. Empty when complete.
  virtual absl::Span<const int32_t> Unread() const = 0;
  // Whether the only unread token is a sampled one.
  virtual bool decoding() const = 0;
  // The number of logit rows that it needs at the end of a slice of the first `count` unread tokens.
  virtual int64_t LogitRows(int64_t count) const = 0;

  // The first `count` unread tokens were read; `logits` is [LogitRows(count), V]. May call the listener.
  // Errors: INTERNAL if the logits are unusable; the job must then be finished with that error.
  virtual absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) = 0;
  // Whether it has all its results: the caller then calls Finish(OK).
  virtual bool complete() const = 0;
  // The number of the stream's tokens that a session has when this job is complete.
  virtual int64_t SessionTokens() const = 0;

  // Whether the session keeps the first SessionTokens() tokens of the stream if the job ends before it is complete.
  virtual bool keeps_partial() const { return false; }

  // Releases the session, the tokens and the parked rows. Called before Finish: the client may use the session as soon
  // as it receives the end. The session keeps what keeps_partial() says, unless the engine has committed it.
  void ReleaseResources();
  // Notifies the listener of the end: OK only if complete. REQUIRES: called once, last.
  virtual void Finish(const absl::Status& status, absl::Time now) = 0;

  // Whether its client does not read its answers, so that computing can pause.
  bool paused() const { return context().paused->load(std::memory_order_relaxed); }
  // OK while the client waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED; then the job should finish with
  // that error.
  absl::Status CheckNotAbandoned(absl::Time now) const;

  // The component in each comment writes the member; every owner of the job may read it.
  RequestTimes times;      // the engine, the step loop and the job
  QueueEntry entry;        // RequestQueue
  ParkedRows parked_rows;  // the step loop, after the job was made
  StepRecord steps;        // the step loop
  JobResources resources;  // MakeJob and the engine

 protected:
  explicit Job(TokenStream stream) : stream_(std::move(stream)) {}

  // Tokens of the stream that were found in the cache when the job first started, or later.
  int64_t reused_tokens() const { return reused_tokens_.value_or(0); }

  // What the request's options take beside the job itself.
  virtual int64_t OptionBytes() const { return 0; }

  TokenStream stream_;

 private:
  std::optional<int64_t> reused_tokens_;
};

}  // namespace longshort::core
