// Which trace a call belongs to, as the headers `traceparent` and `tracestate` say (W3C Trace Context, levels 1 and 2).
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

// One span of a trace, as those see it that come after it.
struct TraceContext {
  TraceId trace_id = {};
  SpanId span_id = {};
  // Whether who made the span has it recorded, and so whoever comes after it should.
  bool sampled = false;
  // Whether the last 7 bytes of the trace id are random.
  bool random = false;
  // What tracing systems have to say beside; passed on as it is.
  std::string state = {};
};

// Nothing if `traceparent` is not valid: then a new trace begins. A `tracestate` that is not valid is as if it were not
// there. Spaces and tabs around both do not matter.
std::optional<TraceContext> ParseTraceContext(std::string_view traceparent, std::string_view tracestate);

}  // namespace longshort::server
