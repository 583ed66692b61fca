// Times of a language model's steps, with streams whose memory is full.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"

namespace longshort {

struct StreamWork {
  std::string model;  // its directory
  std::string precision = "bf16";
  int64_t streams = 1;
  // Of each stream, in each step.
  int64_t step_tokens = 1;
  // Of one more stream, which reads a prompt beside the others; 0: there is none.
  int64_t prompt_tokens = 0;
  int64_t steps = 200;
  int64_t warm_up_steps = 20;
  // Tokens before the first step; -1: as many as the memory and a segment hold. Read by one stream, which the others'
  // pages are copied from.
  int64_t read_before = -1;
};

// {"step_seconds": [...], "step_flops": ..., "step_bytes": ..., "read_seconds": ..., "stream_bytes": ...,
//  "resident_peak": ..., "used_memory": ...}
//   step_seconds  of LanguageModel::Step: from the plan to the logits in the host's memory
//   step_flops    of a step's products, 2 for each multiply-add, all of them behind a full memory
//   step_bytes    what a step must read: each matrix once, and each stream's window and memory
//   read_seconds  of the tokens before
//   stream_bytes  what the cache keeps of a stream
//   resident_peak  how far cache and steps raised the process's resident memory
// Errors: those of the model.
absl::StatusOr<nlohmann::json> MeasureStreams(const StreamWork& work, const GoldenDevice& device);

}  // namespace longshort
