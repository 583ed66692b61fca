// Who is told what a streamed generation says.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/calls/generate_call.h"

namespace longshort {

// Thread-safe but for Open; must not block. Keeps the call's record.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // First of all: how many completions the stream has, and its first event.
  virtual void Open(int32_t completions, StreamStart start) = 0;
  // The engine has taken the whole call, or refused it: then its client hears of nothing but what it is closed with,
  // and may try again. Once, after Open; what is pushed or closed before waits for it.
  virtual void Submitted(bool taken) = 0;
  // Completions are told apart from each other, perhaps by several threads at once. The summary comes last.
  virtual void Push(StreamEvent event) = 0;
  // Nothing is pushed any more. Once, and always: a stream that is never closed never ends.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace longshort
