// The first runs of a model, before anybody waits for one.
#pragma once

#include "absl/status/status.h"
#include "models/loading/loaded_model.h"
#include "models/worker_device.h"

namespace longshort {

// Has a replica of the model on `device` do one step of each kind: a language model reads some tokens and goes on by
// one, a classifier runs an item alone and two in a batch. So weights are in memory, and what libraries make at their
// first use is there, when a worker's first request comes. Nothing is left of what was read. No team of threads is kept
// for workers either: each makes its own when it has work, and any rest ends it (models/layers/library_threads.h).
// Errors: those of Replicate; INTERNAL if the model fails or throws, as it would at the first request.
absl::Status WarmUp(const LoadedModel& loaded, const WorkerDevice& device);

}  // namespace longshort
