#include "server/monitoring/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace longshort::server::tracer_test {

using ::testing::HasSubstr;

class TracerTest : public ::testing::Test {
 protected:
  TraceQueue queue_{{.max_spans = 4, .batch_spans = 4, .delay = absl::ZeroDuration()}};
  ServerMetrics metrics_{{1.0}};
  const TraceContext parent_{.trace_id = {1, 2}, .span_id = {3}, .sampled = true, .random = true, .state = "a=1"};
};

TEST_F(TracerTest, ASpanBelongsToItsParentsTrace) {
  const Tracer tracer({.ratio = 0}, queue_, metrics_);
  const TraceContext own = tracer.Begin(parent_);
  EXPECT_EQ(own.trace_id, parent_.trace_id);
  EXPECT_NE(own.span_id.value, parent_.span_id.value);
  EXPECT_TRUE(own.sampled);
  EXPECT_TRUE(own.random);
  EXPECT_EQ(own.state, "a=1");
}

TEST_F(TracerTest, WithoutAParentATraceBegins) {
  const Tracer tracer({}, queue_, metrics_);
  const TraceContext first = tracer.Begin(std::nullopt);
  const TraceContext second = tracer.Begin(std::nullopt);
  EXPECT_TRUE(first.trace_id.valid());
  EXPECT_TRUE(first.span_id.valid());
  EXPECT_TRUE(first.sampled);
  EXPECT_TRUE(first.random);
  EXPECT_FALSE(first.trace_id == second.trace_id);
}

TEST_F(TracerTest, OneThatGoesOnWithNoTraceBeginsItsOwn) {
  const Tracer tracer({.ratio = 0, .continues_traces = false}, queue_, metrics_);
  const TraceContext own = tracer.Begin(parent_);
  EXPECT_FALSE(own.trace_id == parent_.trace_id);
  EXPECT_FALSE(own.sampled);
  EXPECT_EQ(own.state, "");
}

TEST_F(TracerTest, WhatDoesNotFitIsCounted) {
  Tracer tracer({}, queue_, metrics_);
  auto trace = std::make_unique<CallTrace>();
  trace->stages.resize(2);
  trace->lost_stages = 7;
  tracer.End(std::move(trace));
  trace = std::make_unique<CallTrace>();
  trace->stages.resize(1);
  tracer.End(std::move(trace));
  const std::string metrics = metrics_.Serialize();
  EXPECT_THAT(metrics, HasSubstr("longshort_spans_dropped_total{reason=\"call_limit\"} 7"));
  EXPECT_THAT(metrics, HasSubstr("longshort_spans_dropped_total{reason=\"queue_full\"} 2"));
}

}  // namespace longshort::server::tracer_test
