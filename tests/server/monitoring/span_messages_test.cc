#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/utf8.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/monitoring/trace_exporter.h"

namespace longshort::server::span_messages_test {

using opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
using opentelemetry::proto::trace::v1::Span;
using opentelemetry::proto::trace::v1::Status;

const absl::Time kBegin = absl::UnixEpoch() + absl::Seconds(100);

class SpanMessagesTest : public ::testing::Test {
 protected:
  SpanMessagesTest() {
    call_->context = {.trace_id = {1, 2}, .span_id = {3}, .sampled = true};
    call_->method = "a.B/C";
    call_->begin = kBegin;
    call_->end = kBegin + absl::Seconds(1);
  }

  // The call's span, and behind it its stages'.
  const google::protobuf::RepeatedPtrField<Span>& Spans() {
    std::vector<std::unique_ptr<CallTrace>> calls;
    calls.push_back(std::move(call_));
    EXPECT_TRUE(request_.ParseFromString(EncodeSpans({}, calls, absl::Hours(1))));
    return request_.resource_spans(0).scope_spans(0).spans();
  }

  std::unique_ptr<CallTrace> call_ = std::make_unique<CallTrace>();
  ExportTraceServiceRequest request_;
};

std::map<std::string, std::string> TextsOf(const Span& span) {
  std::map<std::string, std::string> texts;
  for (const auto& attribute : span.attributes()) texts[attribute.key()] = attribute.value().string_value();
  return texts;
}

TEST_F(SpanMessagesTest, TimesAreTheWallClocks) {
  const Span& span = Spans()[0];
  EXPECT_EQ(span.start_time_unix_nano(), 3'700'000'000'000);
  EXPECT_EQ(span.end_time_unix_nano(), 3'701'000'000'000);
}

TEST_F(SpanMessagesTest, AStageLiesWithinItsCall) {
  const absl::Duration before = -absl::Milliseconds(1);
  call_->stages.push_back({.name = "early", .begin = kBegin + before, .end = kBegin + before});
  call_->stages.push_back({.name = "late", .begin = kBegin + absl::Seconds(2), .end = kBegin + absl::Seconds(3)});
  call_->stages.push_back({.name = "turned", .begin = kBegin + absl::Milliseconds(2), .end = kBegin});
  const auto& spans = Spans();
  for (int i = 1; i < spans.size(); ++i) {
    EXPECT_GE(spans[i].start_time_unix_nano(), spans[0].start_time_unix_nano());
    EXPECT_LE(spans[i].start_time_unix_nano(), spans[i].end_time_unix_nano());
    EXPECT_LE(spans[i].end_time_unix_nano(), spans[0].end_time_unix_nano());
    EXPECT_EQ(spans[i].parent_span_id(), spans[0].span_id());
    EXPECT_EQ(spans[i].trace_id(), spans[0].trace_id());
  }
}

TEST_F(SpanMessagesTest, SomeCodesAreErrorsOfTheServer) {
  const std::map<absl::StatusCode, bool> errors = {{absl::StatusCode::kOk, false},
                                                   {absl::StatusCode::kCancelled, false},
                                                   {absl::StatusCode::kInvalidArgument, false},
                                                   {absl::StatusCode::kResourceExhausted, false},
                                                   {absl::StatusCode::kPermissionDenied, false},
                                                   {absl::StatusCode::kUnknown, true},
                                                   {absl::StatusCode::kDeadlineExceeded, true},
                                                   {absl::StatusCode::kUnimplemented, true},
                                                   {absl::StatusCode::kInternal, true},
                                                   {absl::StatusCode::kUnavailable, true},
                                                   {absl::StatusCode::kDataLoss, true}};
  for (const auto& [code, error] : errors) {
    request_.Clear();
    call_ = std::make_unique<CallTrace>();
    call_->code = code;
    const Span& span = Spans()[0];
    EXPECT_EQ(span.status().code(), error ? Status::STATUS_CODE_ERROR : Status::STATUS_CODE_UNSET) << code;
    EXPECT_EQ(TextsOf(span).count("error.type"), error ? 1 : 0) << code;
  }
}

TEST_F(SpanMessagesTest, TextIsUtf8WhateverClientsSay) {
  call_->attributes = {{"a", "ok \xC3\xA9"}, {"b", "bad \xFF"}, {"c", std::vector<std::string>{"\xC3"}}};
  call_->code = absl::StatusCode::kInternal;
  call_->message = std::string(255, 'x') + "\xC3\xA9";  // cut in its middle
  const Span& span = Spans()[0];
  EXPECT_EQ(TextsOf(span)["a"], "ok \xC3\xA9");
  EXPECT_EQ(TextsOf(span)["b"], "bad ?");
  EXPECT_TRUE(IsUtf8(span.status().message()));
  EXPECT_EQ(span.status().message().size(), 256);
}

TEST(ResourceOf, WhatTheOptionsSayWins) {
  TracingOptions options;
  options.resource = {{"service.name", "a"}, {"service.instance.id", "b"}, {"more", "c"}, {"service.name", "d"}};
  std::map<std::string, std::string> found;
  const auto resource = ResourceOf(options);
  for (const auto& attribute : resource.attributes()) {
    EXPECT_TRUE(found.emplace(attribute.key(), attribute.value().string_value()).second) << "once";
  }
  EXPECT_EQ(found["service.name"], "d");
  EXPECT_EQ(found["service.instance.id"], "b");
  EXPECT_EQ(found["more"], "c");
  EXPECT_EQ(found["telemetry.sdk.language"], "cpp");
}

TEST(ResourceOf, EachServerHasAnIdOfItsOwn) {
  const auto id_of = [](const auto& resource) { return resource.attributes(2).value().string_value(); };
  const std::string id = id_of(ResourceOf({}));
  EXPECT_THAT(id, ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(id, id_of(ResourceOf({})));
}

}  // namespace longshort::server::span_messages_test
