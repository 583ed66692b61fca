#include "server/call/unread_answers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"

namespace longshort::server {
namespace {

// Smaller answers are not listed while little is held: listing one would cost as much as a short call.
constexpr int64_t kSmallBytes = int64_t{64} << 10;
constexpr int64_t kFewFraction = 4;
constexpr int64_t kSpareFraction = 16;
// Calls end beyond this share. The rest is for answers of ended calls.
constexpr double kFull = 0.875;
constexpr absl::Duration kLeastPatience = absl::Seconds(1);

absl::Status NoMemory(std::string_view why) {
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("the memory for answers that clients have not read is full: ", std::string(why)));
  core::SetRefusal(status, {.retry_after = absl::Seconds(1)});
  return status;
}

}  // namespace

bool UnreadAnswers::HoldsMuch() const {
  return budget_->held() > budget_->capacity() / kFewFraction || calls_->held() > calls_->capacity() / kFewFraction;
}

UnreadAnswers::Account::Account(UnreadAnswers& all, std::function<Owner()> owner)
    : all_(all), owner_(std::move(owner)), share_(all.budget_) {}

absl::Status UnreadAnswers::Account::Hold(int64_t bytes) {
  const int64_t more = bytes - share_.amount();
  if (more > 0 && (bytes > kSmallBytes || all_.budget_->held() + more > all_.budget_->capacity() / kFewFraction)) {
    const MutexLock lock(all_.mutex_);
    LS_RETURN_IF_ERROR(all_.MakeRoom(*this, more));
  }
  if (!share_.Grow(bytes).ok()) return NoMemory("try again when others have read");
  SetHeld(bytes);
  return absl::OkStatus();
}

void UnreadAnswers::Account::SetHeld(int64_t bytes) {
  share_.SetAmount(bytes);
  if (!is_listed_ && bytes <= kSmallBytes && (bytes == 0 || !all_.HoldsMuch())) return;
  const MutexLock lock(all_.mutex_);
  Entry& entry = all_.List(*this);
  if (entry.is_ended) all_.ended_bytes_ += bytes - entry.bytes;
  if (bytes == 0) {
    is_listed_ = false;
    all_.entries_.erase(this);
    return;
  }
  entry.bytes = bytes;
}

void UnreadAnswers::Account::SetWaiting(bool waits) {
  if (!is_listed_) return;
  const MutexLock lock(all_.mutex_);
  all_.List(*this).waits_since = waits ? MonotonicNow() : absl::InfiniteFuture();
}

UnreadAnswers::Entry& UnreadAnswers::List(Account& account) {
  Entry& entry = entries_[&account];
  if (!std::exchange(account.is_listed_, true)) entry.owner = account.owner_();
  return entry;
}

absl::Status UnreadAnswers::MakeRoom(Account& account, int64_t more) {
  const auto full = static_cast<int64_t>(kFull * static_cast<double>(budget_->capacity()));
  if (live_bytes() + more <= full) return absl::OkStatus();
  Entry& own = List(account);
  // A little more than is needed, so that not every answer looks for the largest.
  const int64_t enough = full - budget_->capacity() / kSpareFraction;
  while (live_bytes() + more > enough) {
    std::unordered_map<std::string_view, int64_t> clients;
    for (const auto& [one, entry] : entries_) {
      if (!entry.is_ended) clients[entry.owner.client] += entry.bytes + (one == &account ? more : 0);
    }
    Entry* largest = nullptr;
    const auto size_of = [&](const Entry& entry) {
      return std::pair(clients[entry.owner.client], entry.bytes + (&entry == &own ? more : 0));
    };
    for (auto& [one, entry] : entries_) {
      if (!entry.is_ended && (largest == nullptr || size_of(entry) > size_of(*largest))) largest = &entry;
    }
    if (largest == nullptr || largest == &own) {
      return live_bytes() + more <= full ? absl::OkStatus() : NoMemory("this call's answer is the largest");
    }
    End(*largest, NoMemory("this call's answer was the largest; read answers as they come"));
  }
  return absl::OkStatus();
}

void UnreadAnswers::End(Entry& entry, absl::Status why) {
  entry.is_ended = true;
  ended_bytes_ += entry.bytes;
  ends_.Post([end = entry.owner.end, why = std::move(why)] { end(why); });
}

void UnreadAnswers::EndImpatient(absl::Time now) {
  const MutexLock lock(mutex_);
  const double used = std::max(static_cast<double>(live_bytes()) / static_cast<double>(budget_->capacity()),
                               static_cast<double>(calls_->held()) / static_cast<double>(calls_->capacity()));
  const bool has_pressure = used > 0.5;
  const absl::Duration patience =
      has_pressure ? std::max(kLeastPatience, patience_ * std::max(0.0, 2 * (1 - used / kFull))) : patience_;
  for (auto& [account, entry] : entries_) {
    if (entry.is_ended || now < entry.waits_since + patience) continue;
    End(entry, has_pressure ? NoMemory(absl::StrCat("the client read nothing for ", absl::FormatDuration(patience)))
                            : absl::CancelledError("the client did not read its answer"));
  }
}

}  // namespace longshort::server
