// Images in the bodies of HTTP: as they are, as a form's file (curl -F), or in JSON as base64 or a data URL.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

// Leaves the file of a form (multipart/form-data) as the body, and calls `set` with every other field. Errors:
// INVALID_ARGUMENT if there is no file; those of `set`.
using SetFormField = absl::FunctionRef<absl::Status(const std::string& name, const std::string& value)>;
absl::Status KeepFileOfForm(HttpRequest& request, SetFormField set);

// The file of a body that is no JSON, which it consumes. Errors: INVALID_ARGUMENT if there is none; the meter's.
absl::StatusOr<std::string> TakeImage(HttpRequest& request, MemoryMeter& meter);

// The file in `text`: "data:image/png;base64,..." or base64. Errors: INVALID_ARGUMENT naming the field; the meter's.
absl::StatusOr<std::string> ImageOfText(const std::string& field, std::string_view text, MemoryMeter& meter);

}  // namespace longshort::server
