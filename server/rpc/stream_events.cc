#include "server/rpc/stream_events.h"

#include <utility>

namespace longshort {
namespace {

constexpr size_t kMostMergedBytes = 64 << 10;

bool SaysSomething(const v1::CompletionDelta& delta) {
  return !delta.text().empty() || !delta.raw().empty() || delta.tokens_size() > 0;
}

void Merge(v1::CompletionDelta from, v1::CompletionDelta& into) {
  into.mutable_text()->append(from.text());
  into.mutable_raw()->append(from.raw());
  for (v1::TokenLogProbability& token : *from.mutable_tokens()) into.add_tokens()->Swap(&token);
  into.set_token_count(into.token_count() + from.token_count());
}

}  // namespace

void StreamEvents::PushDelta(v1::CompletionDelta delta) {
  std::deque<Delta>& deltas = waiting_[delta.index()].deltas;
  const size_t bytes = delta.ByteSizeLong();
  waiting_bytes_ += bytes;
  if (!deltas.empty() && deltas.back().bytes + bytes <= kMostMergedBytes) {
    Merge(std::move(delta), deltas.back().message);
    deltas.back().bytes += bytes;
  } else {
    deltas.push_back({std::move(delta), bytes});
  }
}

void StreamEvents::PushEnd(v1::CompletionEnd end) { waiting_[end.index()].end = std::move(end); }

std::optional<v1::GenerateStreamResponse> StreamEvents::PopFrom(Completion& completion) {
  v1::GenerateStreamResponse event;
  if (!completion.deltas.empty()) {
    v1::CompletionDelta& next = completion.deltas.front().message;
    const bool has_company = completion.deltas.size() > 1;
    const bool is_last = completion.end.has_value() && next.token_count() > 0;
    if (SaysSomething(next) || has_company || is_last) {
      event.mutable_delta()->Swap(&next);
      waiting_bytes_ -= completion.deltas.front().bytes;
      completion.deltas.pop_front();
      return event;
    }
    if (!completion.end.has_value()) return std::nullopt;
    waiting_bytes_ -= completion.deltas.front().bytes;
    completion.deltas.pop_front();
  }
  if (!completion.end.has_value()) return std::nullopt;
  event.mutable_end()->Swap(&*completion.end);
  completion.end.reset();
  return event;
}

std::optional<v1::GenerateStreamResponse> StreamEvents::Pop() {
  const bool keep_alive = std::exchange(keep_alive_, false);
  v1::GenerateStreamResponse event;
  if (start_.has_value()) {
    event.mutable_start()->Swap(&*start_);
    start_.reset();
    return event;
  }
  for (size_t tried = 0; tried < waiting_.size(); ++tried) {
    Completion& completion = waiting_[turn_];
    turn_ = (turn_ + 1) % waiting_.size();
    if (auto popped = PopFrom(completion); popped.has_value()) return popped;
  }
  if (summary_.has_value()) {
    event.mutable_summary()->Swap(&*summary_);
    summary_.reset();
    return event;
  }
  if (!keep_alive) return std::nullopt;
  event.mutable_keep_alive();
  return event;
}

}  // namespace longshort
