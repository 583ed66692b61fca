// What a stream has to say and its reader has not taken yet.
//
// Deltas of one completion that wait are merged up to 64 KiB, so a slow reader finds few long messages in place of many
// short ones; only a delta that is longer by itself (tokens with many alternatives) makes a longer message. Nothing
// bounds what waits but who pushes it: StreamWriter pauses the work by waiting_bytes().
//
// Thread: none of its own; the stream's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "longshort/v1/inference.pb.h"

namespace longshort {

class StreamEvents {
 public:
  // `completions`: how many there are; indices are below.
  explicit StreamEvents(int32_t completions) : waiting_(completions) {}

  // First of all. At most once.
  void PushStart(v1::StreamStart start) { start_ = std::move(start); }
  // A delta without text, raw bytes or tokens to show waits until it has company (its token_count is not lost).
  void PushDelta(v1::CompletionDelta delta);
  // After all deltas of the completion.
  void PushEnd(v1::CompletionEnd end);
  // Last of all. At most once.
  void PushSummary(v1::StreamSummary summary) { summary_ = std::move(summary); }

  // Said once, if there is nothing else to say.
  void PushKeepAlive() { keep_alive_ = true; }

  // Of the deltas that wait, about their length on the wire; in memory those of described tokens take a few times that.
  size_t waiting_bytes() const { return waiting_bytes_; }

  // The next message: the start, then the completions by turns, then the summary. None if nothing is to be said now.
  std::optional<v1::GenerateStreamResponse> Pop();

 private:
  struct Delta {
    v1::CompletionDelta message;
    size_t bytes = 0;  // about its length on the wire
  };
  struct Completion {
    std::deque<Delta> deltas;
    std::optional<v1::CompletionEnd> end;
  };

  std::optional<v1::GenerateStreamResponse> PopFrom(Completion& completion);

  std::optional<v1::StreamStart> start_;
  std::vector<Completion> waiting_;
  size_t waiting_bytes_ = 0;
  size_t turn_ = 0;
  std::optional<v1::StreamSummary> summary_;
  bool keep_alive_ = false;
};

}  // namespace longshort
