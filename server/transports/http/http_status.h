// Status codes of HTTP, and errors that carry one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace longshort::server {

// The usual words for a status code, such as "Not Found".
std::string HttpReason(int http_status);

// An error whose answer has this HTTP status, where the code of gRPC has another one: 408, 413, 415 and so on. By
// default its code is the nearest one of gRPC; of 405 and 415, as Connect has it, UNKNOWN.
absl::Status HttpError(int http_status, std::string_view message);
absl::Status HttpError(int http_status, std::string_view message, absl::StatusCode code);
// 413.
absl::Status BodyTooLarge(size_t max_bytes);

// The HTTP status for an error, as the Connect protocol maps the codes, or as HttpError set it.
int HttpStatusOf(const absl::Status& status);
// The name of the code in Connect's and gRPC's specifications, such as "invalid_argument".
std::string_view CodeName(absl::StatusCode code);

}  // namespace longshort::server
