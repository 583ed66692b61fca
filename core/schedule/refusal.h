// What a refusal for want of room tells the client: when to come back, and how long the line is.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort {

struct Refusal {
  // When there should be room again: by what the work that waits is predicted to take, if that is what has the room.
  absl::Duration retry_after;
  // Requests that waited; 0 if it is not work that has the room.
  int64_t queue_depth = 0;
};

// Carried by a RESOURCE_EXHAUSTED status as a payload of core's own, for who answers the client.
void SetRefusal(absl::Status& status, const Refusal& refusal);
// nullopt if the status carries none.
std::optional<Refusal> GetRefusal(const absl::Status& status);

}  // namespace longshort
