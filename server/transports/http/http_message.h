// One HTTP request, and the answer to it; its query, and the errors that have a status of HTTP.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/inflate.h"
#include "server/access/access_table.h"

namespace longshort::server {

// Content types.
inline constexpr char kJsonType[] = "application/json";
inline constexpr char kBytesType[] = "application/octet-stream";
inline constexpr char kFormType[] = "multipart/form-data";

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // as sent, without "?"
  HttpFields fields;  // names in lower case, in the order of the request
  std::string body;
  // Why the request is refused unread, or its body was not read to the end. OK otherwise.
  absl::Status body_status;
  // The client's address in gRPC's form, such as "ipv4:127.0.0.1:40312".
  std::string peer;
  // Of the client's verified certificate. `authorization` is not set here.
  Credentials certificate;
  bool has_certificate = false;
  // The caller's, if the router has found it (Credentials::grant).
  std::shared_ptr<const Grant> grant;

  // The values of all fields of this name, joined by commas; nullopt if there is none.
  std::optional<std::string> Find(std::string_view name) const {
    std::optional<std::string> value;
    for (const auto& [field, text] : fields) {
      if (field != name) continue;
      value = value.has_value() ? absl::StrCat(*value, ",", text) : text;
    }
    return value;
  }

  // The media type of the body, in lower case and without parameters; empty if it is not set.
  std::string MediaType() const {
    const std::string value = Find("content-type").value_or("");
    return absl::AsciiStrToLower(absl::StripAsciiWhitespace(value.substr(0, value.find(';'))));
  }
};

// Bytes that many answers have in common. Null `owner`: they outlive the process's answers.
struct SharedBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  SharedBytes shared = {};  // in place of `body`, unless they are empty
  std::string content_type = "text/plain; charset=utf-8";
  // Further header fields: name and value.
  HttpFields fields = {};

  std::string_view content() const { return shared.bytes.empty() ? std::string_view(body) : shared.bytes; }
};

// The value of the first parameter `name` of a URL's query; nullopt if there is none, or it is not coded correctly.
std::optional<std::string> QueryParameter(std::string_view query, std::string_view name);

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

// Content codings of HTTP: gzip, deflate and zstd for requests, gzip and zstd for answers.

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
