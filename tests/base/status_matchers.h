// The code and the words of an absl::Status.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

// Returns the message of a result that must be INVALID_ARGUMENT.
template <typename Result>
std::string RefusalOf(const Result& result) {
  const absl::Status status = StatusOf(result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

}  // namespace longshort
