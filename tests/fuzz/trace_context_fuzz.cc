// Parses any two lines as `traceparent` and `tracestate`. The result is empty, or a context that is written as read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/monitoring/trace_context.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view parent = text.substr(0, end);
  const auto context = server::ParseTraceContext(parent, text.substr(std::min(end + 1, text.size())));
  if (!context.has_value()) return 0;
  Require(context->trace_id.valid() && context->span_id.valid(), "ids are not zero");
  const std::string ids = context->trace_id.ToHex() + "-" + context->span_id.ToHex();
  const size_t at = parent.find(ids);
  Require(at != std::string_view::npos, "the ids are those that were said");
  Require(parent.size() - at >= ids.size() + 3, "flags stand behind the ids");
  Require(context->state.size() <= text.size() - end, "a state is what was said, or nothing");
  for (const char c : context->state) Require(c == '\t' || (c >= ' ' && c <= '~'), "a state is printable");
  return 0;
}
