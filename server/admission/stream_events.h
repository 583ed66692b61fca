// What a stream has to say and its reader has not taken yet.
//
// Deltas of one completion that wait are merged up to 64 KiB, so a slow reader finds few long messages in place of many
// short ones; only a delta that is longer by itself (tokens with many alternatives) makes a longer message. Nothing
// bounds what waits but who pushes it: who writes pauses the work by waiting_bytes().
//
// Thread: none of its own; the stream's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/calls/generate_call.h"

namespace longshort::server {

class StreamEvents {
 public:
  // `completions`: how many there are; indices are below.
  explicit StreamEvents(int32_t completions) : waiting_(completions) {}

  // The start is said first of all, the summary last, an end after the deltas of its completion; each at most once. A
  // delta without text, raw bytes or tokens to show waits until it has company (its token_count is not lost). A
  // keepalive is said once, if there is nothing else to say.
  void Push(StreamEvent event);

  // Of the deltas that wait, about their length on the wire; in memory those of described tokens take a few times that.
  size_t waiting_bytes() const { return waiting_bytes_; }

  // The next event: the start, then the completions by turns, then the summary. None if nothing is to be said now.
  std::optional<StreamEvent> Pop();

 private:
  struct Delta {
    CompletionDelta delta;
    size_t bytes = 0;  // about its length on the wire
  };
  struct Waiting {  // of one completion
    std::deque<Delta> deltas;
    std::optional<CompletionEnd> end;
  };

  void PushDelta(CompletionDelta delta);
  std::optional<StreamEvent> PopFrom(Waiting& waiting);

  std::optional<StreamStart> start_;
  std::vector<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  size_t turn_ = 0;
  std::optional<StreamSummary> summary_;
  bool keep_alive_ = false;
};

// Receives the output of a streamed generation.
// Thread-safe, except for Open; must not block. Keeps the call's record.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // First of all: how many completions the stream has, and its first event.
  virtual void Open(int32_t completions, StreamStart start) = 0;
  // The engine has accepted or refused the whole call. A refused call's client gets the status of Close only, and may
  // retry. Called once, after Open; what is pushed or closed before waits for it.
  virtual void Submitted(bool taken) = 0;
  // Several threads may push events of different completions at once. The summary comes last.
  virtual void Push(StreamEvent event) = 0;
  // Nothing is pushed any more. Once, and always: a stream that is never closed never ends.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace longshort::server
