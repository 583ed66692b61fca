// A call of the simulated day: what it asks, what it hears, and whether that is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/requests/language_model_requests.h"
#include "core/requests/request_context.h"
#include "core/sampling/sampler.h"
#include "core/session/session.h"
#include "tests/core/fakes/simulated_service.h"

namespace longshort::core {

// The machine: a step takes a fixed time, so much for each sequence that decodes and each row of a prompt, and as many
// sequences run at once.
inline constexpr absl::Duration kFixedStep = absl::Milliseconds(80);
inline constexpr absl::Duration kDecodingRow = absl::Milliseconds(16);
inline constexpr absl::Duration kPrefillRow = absl::Milliseconds(8);
inline constexpr int64_t kStreams = 8;

// Makes every step fail that reads it. Never sampled.
inline constexpr int32_t kPoison = 3;

struct DayCall {
  // What is asked. `scores`: the log-probability of `prompt`; otherwise max_tokens behind it.
  RequestContext context;
  bool scores = false;
  std::optional<SessionReference> session;
  std::vector<int32_t> history;  // of the session
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  SamplingOptions sampling;
  std::string stop_string;  // none if empty
  bool poisonous() const { return std::count(prompt.begin(), prompt.end(), kPoison) > 0; }
  // Of the machine's time when all streams are taken and nothing is found in the cache.
  absl::Duration Work() const;

  // What the listener received. `on_delta` and `on_end` are notified, too.
  absl::Time submitted;
  bool ended = false;
  absl::Time ended_at;
  absl::Status status;
  std::string bytes;
  std::vector<int32_t> tokens;
  GenerationSummary summary;
  Score score;
  std::function<void()> on_delta = [] {};
  std::function<void()> on_end = [] {};

  // From its submission to its first step, or its end if it had none; nullopt if it did not hear.
  std::optional<absl::Duration> Waited() const;
};

// Sends the call. On OK it will hear its end.
absl::Status Send(const std::shared_ptr<DayCall>& call, SimulatedService& service, const Clock& clock);

// Fails the test unless the call ended, or (`refusal`) was refused, as it may have: with the model's answer, or for a
// reason that was there. `by_force`: an engine ends what it has.
void CheckEnd(const DayCall& call, const FakeLanguageModel& model, const Vocabulary& vocabulary, bool by_force);
void CheckRefusal(const DayCall& call, const absl::Status& refusal, absl::Time now);

}  // namespace longshort::core
