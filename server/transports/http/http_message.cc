#include "server/transports/http/http_message.h"

#include <boost/beast/http/status.hpp>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/text.h"

namespace longshort::server {
namespace {

constexpr char kPayload[] = "longshort/http-status";

// The code of gRPC for a status of HTTP.
absl::StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case 408:
      return absl::StatusCode::kDeadlineExceeded;
    case 413:
      return absl::StatusCode::kResourceExhausted;
    case 405:
    case 415:
      return absl::StatusCode::kUnknown;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

struct Code {
  std::string_view name;
  int http_status;
};

Code Describe(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return {"ok", 200};
    case absl::StatusCode::kCancelled:
      return {"canceled", 499};
    case absl::StatusCode::kInvalidArgument:
      return {"invalid_argument", 400};
    case absl::StatusCode::kDeadlineExceeded:
      return {"deadline_exceeded", 504};
    case absl::StatusCode::kNotFound:
      return {"not_found", 404};
    case absl::StatusCode::kAlreadyExists:
      return {"already_exists", 409};
    case absl::StatusCode::kPermissionDenied:
      return {"permission_denied", 403};
    case absl::StatusCode::kResourceExhausted:
      return {"resource_exhausted", 429};
    case absl::StatusCode::kFailedPrecondition:
      return {"failed_precondition", 400};
    case absl::StatusCode::kAborted:
      return {"aborted", 409};
    case absl::StatusCode::kOutOfRange:
      return {"out_of_range", 400};
    case absl::StatusCode::kUnimplemented:
      return {"unimplemented", 501};
    case absl::StatusCode::kInternal:
      return {"internal", 500};
    case absl::StatusCode::kUnavailable:
      return {"unavailable", 503};
    case absl::StatusCode::kDataLoss:
      return {"data_loss", 500};
    case absl::StatusCode::kUnauthenticated:
      return {"unauthenticated", 401};
    default:
      return {"unknown", 500};
  }
}

}  // namespace

std::string HttpReason(int http_status) {
  if (http_status == 499) return "Client Closed Request";
  return std::string(
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(static_cast<unsigned>(http_status))));
}

absl::Status HttpError(int http_status, std::string_view message) {
  return HttpError(http_status, message, CodeOf(http_status));
}

absl::Status HttpError(int http_status, std::string_view message, absl::StatusCode code) {
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(http_status)));
  return status;
}

absl::Status BodyTooLarge(size_t max_bytes) {
  return HttpError(413, max_bytes == 0
                            ? std::string("the request has a body; send none to this path")
                            : absl::StrCat("the request's body has more than ", max_bytes, " bytes, the limit"));
}

int HttpStatusOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int http_status = 0;
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &http_status)) return http_status;
  return Describe(status.code()).http_status;
}

std::string_view CodeName(absl::StatusCode code) { return Describe(code).name; }

std::optional<std::string> QueryParameter(std::string_view query, std::string_view name) {
  constexpr int kMaxParameters = 32;  // no call has more than five
  int parameters = 0;
  for (const absl::string_view parameter : absl::StrSplit(absl::string_view(query.data(), query.size()), '&')) {
    if (++parameters > kMaxParameters) break;
    const std::string_view one(parameter.data(), parameter.size());
    const size_t equals = one.find('=');
    if (DecodePercent(one.substr(0, equals), true) != name) continue;
    return equals == std::string_view::npos ? "" : DecodePercent(one.substr(equals + 1), true);
  }
  return std::nullopt;
}

}  // namespace longshort::server
