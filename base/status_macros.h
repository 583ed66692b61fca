// Macros that return errors to the caller.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates an expression of type absl::Status; returns it from the function if it is an error.
#define LS_RETURN_IF_ERROR(expression)     \
  do {                                     \
    absl::Status ls_status = (expression); \
    if (!ls_status.ok()) return ls_status; \
  } while (false)

#define LS_CONCATENATE_INNER(a, b) a##b
#define LS_CONCATENATE(a, b) LS_CONCATENATE_INNER(a, b)

// Evaluates an absl::StatusOr; returns its error from the function, or moves its value to `left`, which may declare a
// variable.
#define LS_ASSIGN_OR_RETURN(left, expression) \
  LS_ASSIGN_OR_RETURN_IMPLEMENTATION(LS_CONCATENATE(ls_status_or_, __LINE__), left, expression)
#define LS_ASSIGN_OR_RETURN_IMPLEMENTATION(status_or, left, expression) \
  auto status_or = (expression);                                        \
  if (!status_or.ok()) return std::move(status_or).status();            \
  left = std::move(status_or).value()
