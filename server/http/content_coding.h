// Content codings of HTTP: gzip, deflate and zstd for requests, gzip and zstd for answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/http/http_message.h"

namespace longshort::server {

// Replaces `body`, coded by `coding` ("" or "identity": not at all), by its content. Errors: 413 if that has more than
// `max_bytes`; 415 for another coding; INVALID_ARGUMENT for damaged data.
absl::Status DecodeContent(std::string_view coding, int64_t max_bytes, std::string& body);

// Codes the answer's body by zstd or gzip, if the client accepts one of them and it pays.
void EncodeContent(const HttpRequest& request, HttpResponse& response);

}  // namespace longshort::server
