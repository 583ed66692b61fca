#include "server/fronts/json/connect_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/fronts/longshort_v1/longshort_v1.h"

namespace longshort::server::connect_codec_test {

// The protocol's table of codes (connectrpc.com/docs/protocol#error-codes).
TEST(ConnectCodec, EveryCodeHasItsNameAndItsHttpStatus) {
  const struct {
    absl::StatusCode code;
    const char* name;
    int http_status;
  } kCodes[] = {
      {absl::StatusCode::kCancelled, "canceled", 499},
      {absl::StatusCode::kUnknown, "unknown", 500},
      {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
      {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
      {absl::StatusCode::kNotFound, "not_found", 404},
      {absl::StatusCode::kAlreadyExists, "already_exists", 409},
      {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
      {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
      {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
      {absl::StatusCode::kAborted, "aborted", 409},
      {absl::StatusCode::kOutOfRange, "out_of_range", 400},
      {absl::StatusCode::kUnimplemented, "unimplemented", 501},
      {absl::StatusCode::kInternal, "internal", 500},
      {absl::StatusCode::kUnavailable, "unavailable", 503},
      {absl::StatusCode::kDataLoss, "data_loss", 500},
      {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
  };
  const std::vector<Rpc> rpcs = LongshortV1Rpcs();
  const auto rpc =
      std::find_if(rpcs.begin(), rpcs.end(), [](const Rpc& one) { return one.kind == RpcKind::kServerStream; });
  HttpRequest head;
  head.method = "POST";
  head.fields = {{"content-type", "application/connect+json"}};
  const auto codec = MakeConnectCodec(*rpc, head, 1000);
  ASSERT_TRUE(codec.ok()) << codec.status();
  for (const auto& [code, name, http_status] : kCodes) {
    const absl::Status status(code, "why: é");
    const HttpResponse unary = ConnectError(status);
    const nlohmann::json error = {{"code", name}, {"message", "why: é"}};
    EXPECT_EQ(unary.status, http_status) << name;
    EXPECT_EQ(nlohmann::json::parse(unary.body), error);
    const HttpResponse stream = (*codec)->WriteError(status);
    EXPECT_EQ(stream.status, 200);
    EXPECT_EQ(stream.body[0], 2);
    EXPECT_EQ(nlohmann::json::parse(stream.body.substr(5)), (nlohmann::json{{"error", error}}));
  }
}

}  // namespace longshort::server::connect_codec_test
