// What a recorded call did and when: its span, and those of its stages, as far as they are known before they are
// exported. Plain data, so that recording takes next to nothing; whoever exports it gives the stages their ids.
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
#include "server/monitoring/trace_context.h"

namespace longshort::server {

using AttributeValue = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;

// Keys are literals.
struct Attribute {
  const char* key = nullptr;
  AttributeValue value = {};
};

// One stage of a call, a span below it.
struct StageSpan {
  const char* name = nullptr;
  absl::Time begin;
  absl::Time end;
  // Which of the call's completions, documents or images; -1 for all of them.
  int64_t part = -1;
  // Counts with their keys; a null key is none.
  std::array<std::pair<const char*, int64_t>, 2> counts = {};
};

struct CallTrace {
  // Of stages, which a call of many parts could have without end; a few more are made before they are looked at.
  static constexpr int64_t kMaxStages = 256;

  int64_t spans() const { return 1 + static_cast<int64_t>(stages.size()); }

  TraceContext context = {};  // of the call's own span
  SpanId parent = {};         // not valid for the first span of a trace
  // Whether the call came from another process, and not within another call of this one.
  bool is_remote = true;
  // In full, as package.Service/Method.
  const char* method = "";
  absl::Time begin;
  absl::Time end;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  std::vector<Attribute> attributes = {};
  std::vector<StageSpan> stages = {};
  int64_t lost_stages = 0;
  // Completions, documents and images; a stage says which of them it is of only if there are several.
  int64_t parts = 0;
};

}  // namespace longshort::server
