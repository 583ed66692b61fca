#include <gtest/gtest.h>

#include <string>

#include "server/monitoring/otlp_client.h"
#include "server/rpc/error_details.pb.h"

namespace longshort::server::collector_test {

std::string Details(const char* type, int64_t seconds, int32_t nanos) {
  rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(seconds);
  retry.mutable_retry_delay()->set_nanos(nanos);
  rpc::ErrorStatus details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.DebugInfo");
  google::protobuf::Any& detail = *details.add_details();
  detail.set_type_url(type);
  retry.SerializeToString(detail.mutable_value());
  return details.SerializeAsString();
}

TEST(RetryAfter, TheseCodesMayBeTriedAgain) {
  for (const auto code : {grpc::CANCELLED, grpc::DEADLINE_EXCEEDED, grpc::ABORTED, grpc::OUT_OF_RANGE,
                          grpc::UNAVAILABLE, grpc::DATA_LOSS}) {
    EXPECT_EQ(RetryAfter({code, ""}), absl::ZeroDuration()) << code;
  }
}

TEST(RetryAfter, OthersMayNot) {
  for (const auto code : {grpc::UNKNOWN, grpc::INVALID_ARGUMENT, grpc::NOT_FOUND, grpc::ALREADY_EXISTS,
                          grpc::PERMISSION_DENIED, grpc::UNAUTHENTICATED, grpc::FAILED_PRECONDITION,
                          grpc::UNIMPLEMENTED, grpc::INTERNAL, grpc::RESOURCE_EXHAUSTED}) {
    EXPECT_EQ(RetryAfter({code, ""}), std::nullopt) << code;
  }
}

TEST(RetryAfter, ACollectorWithoutRoomSaysWhen) {
  const char* const type = "type.googleapis.com/google.rpc.RetryInfo";
  EXPECT_EQ(RetryAfter({grpc::RESOURCE_EXHAUSTED, "", Details(type, 2, 500'000'000)}), absl::Milliseconds(2500));
  EXPECT_EQ(RetryAfter({grpc::UNAVAILABLE, "", Details(type, 3, 0)}), absl::Seconds(3));
  EXPECT_EQ(RetryAfter({grpc::RESOURCE_EXHAUSTED, "", Details("x/google.rpc.Other", 2, 0)}), std::nullopt);
  EXPECT_EQ(RetryAfter({grpc::RESOURCE_EXHAUSTED, "", "no message"}), std::nullopt);
}

// OTLP over HTTP: these codes and no others, after the time that the collector names.
TEST(RetryAfter, HttpHasFourCodesThatMayBeTriedAgain) {
  for (const int status : {429, 502, 503, 504}) EXPECT_EQ(RetryAfter(status, ""), absl::ZeroDuration()) << status;
  for (const int status : {301, 400, 401, 404, 413, 500, 501})
    EXPECT_EQ(RetryAfter(status, "1"), std::nullopt) << status;
  EXPECT_EQ(RetryAfter(429, "7"), absl::Seconds(7));
  EXPECT_EQ(RetryAfter(503, "Fri, 27 Nov 2026 07:00:00 GMT"), absl::ZeroDuration());
  EXPECT_EQ(RetryAfter(503, "-1"), absl::ZeroDuration());
}

}  // namespace longshort::server::collector_test
