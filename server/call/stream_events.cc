#include "server/call/stream_events.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace longshort::server {
namespace {

constexpr size_t kMaxMergedBytes = 64 << 10;

bool SaysSomething(const CompletionDelta& delta) {
  return !delta.text.empty() || !delta.raw.empty() || !delta.tokens.empty();
}

// The approximate wire size of the delta: its own numbers, and the id, bytes, log-probability and framing of each token
// and alternative.
size_t WireBytes(const CompletionDelta& delta) {
  constexpr size_t kDeltaBytes = 4;
  constexpr size_t kTokenBytes = 16;
  size_t tokens = delta.tokens.size();
  for (const core::GeneratedToken& token : delta.tokens) tokens += token.alternatives.size();
  return kDeltaBytes + delta.text.size() + delta.raw.size() + kTokenBytes * tokens;
}

size_t BytesOfAlternatives(const CompletionDelta& delta) {
  int64_t bytes = 0;
  for (const core::GeneratedToken& token : delta.tokens) {
    bytes += core::MemoryOfToken(static_cast<int64_t>(token.alternatives.capacity())) - core::MemoryOfToken(0);
  }
  return static_cast<size_t>(bytes);
}

void Merge(CompletionDelta from, CompletionDelta& into) {
  into.text += from.text;
  into.raw += from.raw;
  into.tokens.insert(into.tokens.end(), std::make_move_iterator(from.tokens.begin()),
                     std::make_move_iterator(from.tokens.end()));
  into.token_count += from.token_count;
  into.session_tokens = std::max(into.session_tokens, from.session_tokens);
}

}  // namespace

size_t StreamEvents::Delta::memory() const {
  return delta.text.capacity() + delta.raw.capacity() + delta.tokens.capacity() * core::MemoryOfToken(0) + alternatives;
}

void StreamEvents::Push(StreamEvent event) {
  if (auto* start = std::get_if<StreamStart>(&event); start != nullptr) {
    start_ = std::move(*start);
  } else if (auto* delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
    PushDelta(std::move(*delta));
  } else if (auto* end = std::get_if<CompletionEnd>(&event); end != nullptr) {
    waiting_[end->index].end = std::move(*end);
  } else if (auto* summary = std::get_if<StreamSummary>(&event); summary != nullptr) {
    summary_ = *summary;
  } else {
    keep_alive_ = true;
  }
}

void StreamEvents::PushDelta(CompletionDelta delta) {
  std::deque<Delta>& deltas = waiting_[delta.index].deltas;
  const size_t wire_bytes = WireBytes(delta), alternatives = BytesOfAlternatives(delta);
  if (!deltas.empty() && deltas.back().wire_bytes + wire_bytes <= kMaxMergedBytes) {
    waiting_memory_ -= deltas.back().memory();
    Merge(std::move(delta), deltas.back().delta);
    deltas.back().wire_bytes += wire_bytes;
    deltas.back().alternatives += alternatives;
  } else {
    deltas.push_back({.delta = std::move(delta), .wire_bytes = wire_bytes, .alternatives = alternatives});
  }
  waiting_bytes_ += wire_bytes;
  waiting_memory_ += deltas.back().memory();
}

std::optional<StreamEvent> StreamEvents::PopFrom(Waiting& waiting) {
  if (!waiting.deltas.empty()) {
    Delta& next = waiting.deltas.front();
    const bool has_company = waiting.deltas.size() > 1;
    const bool is_last = waiting.end.has_value() && next.delta.token_count > 0;
    const bool say = SaysSomething(next.delta) || has_company || is_last;
    if (!say && !waiting.end.has_value()) return std::nullopt;
    waiting_bytes_ -= next.wire_bytes;
    waiting_memory_ -= next.memory();
    CompletionDelta delta = std::move(next.delta);
    waiting.deltas.pop_front();
    if (say) return delta;
  }
  if (!waiting.end.has_value()) return std::nullopt;
  return *std::exchange(waiting.end, std::nullopt);
}

std::optional<StreamEvent> StreamEvents::Pop() {
  const bool keep_alive = std::exchange(keep_alive_, false);
  if (start_.has_value()) return *std::exchange(start_, std::nullopt);
  for (size_t tried = 0; tried < waiting_.size(); ++tried) {
    Waiting& waiting = waiting_[turn_];
    turn_ = (turn_ + 1) % waiting_.size();
    if (auto popped = PopFrom(waiting); popped.has_value()) return popped;
  }
  if (summary_.has_value()) return *std::exchange(summary_, std::nullopt);
  if (!keep_alive) return std::nullopt;
  return KeepAlive();
}

}  // namespace longshort::server
