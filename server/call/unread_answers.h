// The memory of answers, from before they are encoded until their clients have taken them. A few bytes ask for
// megabytes, and a client need not read them. So answers have a budget beside that of requests.
//
// - While less than half of the budget is held, a client may leave an answer unread for --slow-reader-timeout.
// - Beyond half of it, or of the memory of calls, this patience shortens, down to a second.
// - At the limit, the calls with the largest answers end, those of the client that holds the most first. Other calls
//   go on.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "server/call/delivery_threads.h"

namespace longshort::server {

class UnreadAnswers final {
 public:
  struct Owner {
    std::string client;
    // Ends the call, whose account may be gone by then. Called once, by the thread for ends. `why`: RESOURCE_EXHAUSTED
    // if the memory is needed, otherwise CANCELLED: the client did not read for the whole patience.
    std::function<void(const absl::Status& why)> end;
  };

  // The answers of one call.
  //
  // Thread: one at a time.
  class Account final {
   public:
    // `owner` is called when the account has a large answer for the first time, by the thread that holds it.
    Account(UnreadAnswers& all, std::function<Owner()> owner);
    ~Account() { SetHeld(0); }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    // Sets the bytes that the call holds, before they exist.
    // Errors: RESOURCE_EXHAUSTED, with a Refusal, if the call would be the next to end for their sake; the bytes are
    // then unchanged.
    absl::Status Hold(int64_t bytes);
    // The same for bytes that exist.
    void SetHeld(int64_t bytes);
    int64_t bytes() const { return share_.amount(); }
    // Whether an answer waits for the client to read from now on. Has an effect on a listed account only.
    void SetWaiting(bool waits);
    // Whether the call may be ended, because it has, or had, a large answer.
    bool is_listed() const { return is_listed_; }
    // For another account of the same call.
    const std::function<Owner()>& owner() const { return owner_; }

   private:
    friend class UnreadAnswers;
    UnreadAnswers& all_;
    const std::function<Owner()> owner_;
    Budget::Share share_;
    bool is_listed_ = false;
  };

  // `calls`: the memory of calls, which unread answers keep. `ends` must outlive this.
  UnreadAnswers(std::shared_ptr<Budget> budget, std::shared_ptr<const Budget> calls, absl::Duration patience,
                DeliveryThread& ends)
      : budget_(std::move(budget)), calls_(std::move(calls)), patience_(patience), ends_(ends) {}

  // Ends the calls that have waited for longer than the present patience. To be called twice a second.
  void EndImpatient(absl::Time now);

 private:
  struct Entry {
    Owner owner;
    int64_t bytes = 0;
    absl::Time waits_since = absl::InfiniteFuture();
    bool is_ended = false;
  };

  // The bytes without those of ended calls, whose transport has not released them yet.
  int64_t live_bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return budget_->held() - ended_bytes_; }
  // Ends the largest calls until there is room for `more` bytes of `account`. Errors: it would be the next one.
  absl::Status MakeRoom(Account& account, int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Entry& entry, absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& List(Account& account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether so much is held that small answers are listed, too.
  bool HoldsMuch() const;

  const std::shared_ptr<Budget> budget_;
  const std::shared_ptr<const Budget> calls_;
  const absl::Duration patience_;
  DeliveryThread& ends_;
  Mutex mutex_;
  int64_t ended_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The calls with a large answer. While many bytes are held, all calls.
  std::unordered_map<const Account*, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// Whether a message of a stream is being written, and whether the client reads it.
//
// gRPC reports a write as done once the client has granted window for all of it. So a client that reads nothing appears
// as a write that does not end. Progress within one message is not visible.
//
// Thread: none of its own; the stream's mutex guards it.
class WriteTimer {
 public:
  // `timeout`: how long the write of one message may take.
  explicit WriteTimer(absl::Duration timeout) : timeout_(timeout) {}

  void Begin(absl::Time now) { began_ = now; }
  void End() { began_ = absl::InfiniteFuture(); }

  bool writing() const { return began_ != absl::InfiniteFuture(); }
  // Whether a write has been pending for the timeout or longer.
  bool IsStuck(absl::Time now) const { return now >= NextCheck(now); }
  // The earliest time at which a write can be stuck.
  absl::Time NextCheck(absl::Time now) const { return std::min(began_, now) + timeout_; }

 private:
  const absl::Duration timeout_;
  absl::Time began_ = absl::InfiniteFuture();  // infinite if no write is pending
};

}  // namespace longshort::server
