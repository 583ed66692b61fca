// A call's trace, from the headers `traceparent` and `tracestate` (W3C Trace Context, levels 1 and 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longshort::server {

struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;

  bool valid() const { return (high | low) != 0; }
  bool operator==(const TraceId& other) const { return high == other.high && low == other.low; }
  std::string ToHex() const;    // 32 digits
  std::string ToBytes() const;  // 16 bytes, as on the wire
};

struct SpanId {
  uint64_t value = 0;

  bool valid() const { return value != 0; }
  std::string ToHex() const;    // 16 digits
  std::string ToBytes() const;  // 8 bytes
};

// One span of a trace, as its children see it.
struct TraceContext {
  TraceId trace_id = {};
  SpanId span_id = {};
  // Whether the span is recorded, so its children should be, too.
  bool sampled = false;
  // Whether the last 7 bytes of the trace id are random.
  bool random = false;
  // Data of tracing systems, passed on unchanged.
  std::string state = {};
};

// Returns nullopt if `traceparent` is invalid: then a new trace begins. Ignores an invalid `tracestate`, and spaces
// and tabs around both.
std::optional<TraceContext> ParseTraceContext(std::string_view traceparent, std::string_view tracestate);

}  // namespace longshort::server
