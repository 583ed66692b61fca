// Content codings of HTTP: gzip, deflate and zstd for requests, gzip and zstd for answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/inflate.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

// Whether a request's coding is one: neither "" nor "identity".
bool IsCoded(std::string_view coding);
// Replaces `body`, coded by `coding`, by its content, if IsCoded. Charges the memory that this takes beside `body`
// before it is taken. Errors: 413 if the content is too large (CheckInflation); 415 for another coding;
// INVALID_ARGUMENT for damaged data; those of `charge`.
absl::Status DecodeContent(std::string_view coding, int64_t max_bytes, const InflatedText::Charge& charge,
                           std::string& body);

// The coding that a client accepts by this field of its request: "zstd", "gzip", or "".
std::string_view AcceptedCoding(const HttpRequest& request, std::string_view field);
// Codes `content` by one of these; nullopt if it does not pay.
std::optional<std::string> EncodeContent(std::string_view coding, std::string_view content);
// Codes the answer's body, if the client accepts it (Accept-Encoding) and it pays.
void EncodeContent(const HttpRequest& request, HttpResponse& response);

}  // namespace longshort::server
