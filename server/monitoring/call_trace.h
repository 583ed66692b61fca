// A recorded call: its span and the spans of its stages. Plain data, so that recording costs little; the exporter
// assigns the stages' ids.
//
// Times are MonotonicNow's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "server/monitoring/trace_context.h"

namespace longshort::server {

using AttributeValue = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;

// Keys are literals.
struct Attribute {
  const char* key = nullptr;
  AttributeValue value = {};
};

// One stage of a call: a child span.
struct StageSpan {
  const char* name = nullptr;
  absl::Time begin;
  absl::Time end;
  // The index of the completion, document or image; -1 for all of them.
  int64_t part = -1;
  // Counts with their keys; a null key is unused.
  std::array<std::pair<const char*, int64_t>, 2> counts = {};
};

struct CallTrace {
  // Most stages of a call, which may have any number of parts; a few more may be recorded, because threads check before
  // they add.
  static constexpr int64_t kMaxStages = 256;

  int64_t spans() const { return 1 + static_cast<int64_t>(stages.size()); }
  // In memory, here and as a message to the collector.
  int64_t Bytes() const;

  TraceContext context = {};  // the call's own span
  SpanId parent = {};         // not valid for the first span of a trace
  // Whether the call came from another process, not from within another call of this one.
  bool is_remote = true;
  // The full name, package.Service/Method.
  const char* method = "";
  absl::Time begin;
  absl::Time end;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  std::vector<Attribute> attributes = {};
  std::vector<StageSpan> stages = {};
  int64_t lost_stages = 0;
  // Number of completions, documents or images. A stage names its part only if there are several.
  int64_t parts = 0;
  Budget::Share memory = {};  // Bytes(), once it waits for its export
};

}  // namespace longshort::server
