// The events of a stream that are not written yet.
//
// Queued deltas of one completion are merged up to 64 KiB, so a slow reader gets few long messages instead of many
// short ones. Only a single delta that is longer (tokens with many alternatives) makes a longer message. The queue is
// unbounded: the writer applies back-pressure, based on waiting_bytes().
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
  // `completions`: the number of completions. Event indices are in [0, completions).
  explicit StreamEvents(int32_t completions) : waiting_(completions) {}

  // The start is popped first and the summary last. A completion's end follows its deltas. Each of them is pushed at
  // most once. A delta without text, raw bytes or tokens waits to be merged with the next one, so that its token_count
  // is kept. A keepalive is popped once, if there is no other event.
  void Push(StreamEvent event);

  // The approximate bytes of the queued deltas on the wire, and what the deltas take in memory.
  size_t waiting_bytes() const { return waiting_bytes_; }
  size_t waiting_memory() const { return waiting_memory_; }

  // The next event: the start, then the completions in round-robin order, then the summary. nullopt if there is none.
  std::optional<StreamEvent> Pop();

 private:
  struct Delta {
    CompletionDelta delta;
    size_t wire_bytes = 0;    // about
    size_t alternatives = 0;  // bytes that the tokens' alternatives take in memory

    size_t memory() const;
  };
  struct Waiting {  // events of one completion
    std::deque<Delta> deltas;
    std::optional<CompletionEnd> end;
  };

  void PushDelta(CompletionDelta delta);
  std::optional<StreamEvent> PopFrom(Waiting& waiting);

  std::optional<StreamStart> start_;
  std::vector<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  size_t waiting_memory_ = 0;
  size_t turn_ = 0;
  std::optional<StreamSummary> summary_;
  bool keep_alive_ = false;
};

// Receives the output of a streamed generation.
// Thread-safe, except for Open; must not block. Holds the call's record.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // Called first, with the number of completions and the first event.
  virtual void Open(int32_t completions, StreamStart start) = 0;
  // The engine has accepted (`taken`) or refused the whole call. The client of a refused call gets only the status of
  // Close, so it may retry. Called once, after Open. Earlier calls of Push and Close are held back until then.
  virtual void Submitted(bool taken) = 0;
  // Several threads may push events of different completions concurrently. The summary comes last.
  virtual void Push(StreamEvent event) = 0;
  // Called once, after the last Push. A stream that is not closed never ends.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace longshort::server
