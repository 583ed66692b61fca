// Matchers for the code and the words of an absl::Status.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace longshort {

inline absl::Status StatusOf(const absl::Status& status) { return status; }

template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  const absl::Status status = StatusOf(arg);
  *result_listener << "status " << status.ToString();
  return status.ok();
}

// INVALID_ARGUMENT, with a message that contains all of `words`.
MATCHER_P(Refuses, words, "is INVALID_ARGUMENT with the given words") {
  const absl::Status status = StatusOf(arg);
  *result_listener << "status " << status.ToString();
  if (status.code() != absl::StatusCode::kInvalidArgument) return false;
  for (const std::string& word : words) {
    if (std::string(status.message()).find(word) == std::string::npos) return false;
  }
  return true;
}

}  // namespace longshort
