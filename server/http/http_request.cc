#include "server/http/http_request.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr char kEndOfLine[] = "\r\n";
constexpr char kEndOfHead[] = "\r\n\r\n";

// "GET /metrics?a=b HTTP/1.1"
absl::StatusOr<HttpRequest> ReadRequestLine(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
  if (parts.size() != 3 || parts[0].empty()) return absl::InvalidArgumentError("not a request line");
  if (!absl::StartsWith(parts[2], "HTTP/1.")) return absl::InvalidArgumentError("not HTTP/1");
  if (!absl::StartsWith(parts[1], "/")) return absl::InvalidArgumentError("not a path");
  HttpRequest request;
  request.method = std::string(parts[0]);
  request.path = std::string(parts[1].substr(0, parts[1].find('?')));
  request.keep_alive = parts[2] != "HTTP/1.0";
  return request;
}

absl::Status ReadField(absl::string_view line, HttpRequest* request) {
  const size_t colon = line.find(':');
  // Nothing may stand between a name and its colon, and no line goes on in the next.
  if (colon == absl::string_view::npos || colon == 0 || line.substr(0, colon).find_first_of(" \t") < colon) {
    return absl::InvalidArgumentError("not a header field");
  }
  const absl::string_view name = line.substr(0, colon);
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "Connection")) {
    for (const absl::string_view option : absl::StrSplit(value, ',')) {
      const absl::string_view word = absl::StripAsciiWhitespace(option);
      if (absl::EqualsIgnoreCase(word, "close")) request->keep_alive = false;
      if (absl::EqualsIgnoreCase(word, "keep-alive")) request->keep_alive = true;
    }
  } else if (absl::EqualsIgnoreCase(name, "Content-Length")) {
    // Of several one counts that says that there is a body: otherwise that would be read as the next request.
    request->has_body |= value != "0";
  } else if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) {
    request->has_body = true;
  } else if (absl::EqualsIgnoreCase(name, "Authorization")) {
    request->authorization =
        request->authorization.has_value() ? absl::StrCat(*request->authorization, ",", value) : std::string(value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<HttpRequestHead>> ReadHttpRequest(std::string_view bytes) {
  const size_t end = bytes.find(kEndOfHead);
  if (end == std::string_view::npos) return std::nullopt;
  bytes = bytes.substr(0, end);
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::ByString(kEndOfLine));
  HttpRequestHead head;
  LS_ASSIGN_OR_RETURN(head.request, ReadRequestLine(lines.front()));
  for (size_t i = 1; i < lines.size(); ++i) LS_RETURN_IF_ERROR(ReadField(lines[i], &head.request));
  head.bytes = end + sizeof(kEndOfHead) - 1;
  return head;
}

}  // namespace longshort
