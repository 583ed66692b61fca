#include "tests/core/generation/day_call.h"

#include <algorithm>
#include <utility>

#include "core/schedule/refusal.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/reference_answers.h"

namespace longshort::core {
namespace {

class DayListener final : public GenerationListener, public ScoringListener {
 public:
  DayListener(std::shared_ptr<DayCall> call, const Clock& clock) : call_(std::move(call)), clock_(clock) {}

  void OnPromptScored(std::vector<GeneratedToken>) override { ADD_FAILURE() << "no call asked for scores"; }
  void OnDelta(GenerationDelta delta) override {
    EXPECT_FALSE(call_->ended);
    call_->bytes += delta.bytes;
    for (const GeneratedToken& token : delta.tokens) call_->tokens.push_back(token.token);
    call_->on_delta();
  }
  void OnFinished(const absl::Status& status, const GenerationSummary& summary) override {
    call_->summary = summary;
    End(status);
  }
  void OnFinished(absl::StatusOr<Score> score) override {
    if (score.ok()) call_->score = *score;
    End(score.status());
  }

 private:
  void End(const absl::Status& status) {
    EXPECT_FALSE(call_->ended) << "ended twice";
    call_->ended = true;
    call_->ended_at = clock_.Now();
    call_->status = status;
    call_->on_end();
  }

  const std::shared_ptr<DayCall> call_;
  const Clock& clock_;
};

// A call that is refused because it cannot meet its deadline needs at least about twice the remaining time to be read:
// the estimate is optimistic, and after a stall of the machine it is wrong by at most this much.
void CheckTooLate(const DayCall& call, absl::Time now) {
  const absl::Duration fastest = kFixedStep + kPrefillRow * static_cast<int64_t>(call.prompt.size());
  EXPECT_LE(call.context.deadline - now, 2 * fastest) << "refused though there was enough time";
}

void CheckGeneration(const DayCall& call, const FakeLanguageModel& model, const Vocabulary& vocabulary) {
  std::vector<int32_t> before = call.history;
  before.insert(before.end(), call.prompt.begin(), call.prompt.end());
  // Of one that did not end well, what it heard.
  const int64_t count = call.status.ok() ? call.max_tokens : static_cast<int64_t>(call.tokens.size());
  const std::vector<int32_t> all = TokensAfter(model, vocabulary, std::move(before), call.sampling, count);
  std::string text;
  for (const int32_t token : all) text += vocabulary.Decode(token);
  if (!call.status.ok()) {
    EXPECT_EQ(call.tokens, all);
    EXPECT_EQ(call.bytes, text.substr(0, call.bytes.size()));
    return;
  }
  const size_t stop = call.stop_string.empty() ? std::string::npos : text.find(call.stop_string);
  EXPECT_EQ(call.bytes, text.substr(0, stop));
  EXPECT_EQ(call.summary.finish_reason,
            stop == std::string::npos ? FinishReason::kMaxTokens : FinishReason::kStopString);
  if (stop == std::string::npos) {
    EXPECT_EQ(call.tokens, all);
  }
  EXPECT_EQ(call.summary.prompt_tokens, static_cast<int64_t>(call.prompt.size()));
  if (!call.session.has_value()) return;
  EXPECT_EQ(call.summary.session_tokens,
            static_cast<int64_t>(call.history.size() + call.prompt.size() + call.tokens.size()));
}

void CheckScore(const DayCall& call, const FakeLanguageModel& model) {
  double total = 0;
  for (int64_t i = 1; i < static_cast<int64_t>(call.prompt.size()); ++i) {
    total += LogProbabilityOf(model, call.prompt, i);
  }
  EXPECT_EQ(call.score.scored_tokens, static_cast<int64_t>(call.prompt.size()) - 1);
  EXPECT_NEAR(call.score.total_log_probability, total, 1e-6 * static_cast<double>(call.prompt.size()));
}

}  // namespace

absl::Duration DayCall::Work() const {
  return kPrefillRow * static_cast<int64_t>(prompt.size()) + (kDecodingRow + kFixedStep / kStreams) * max_tokens;
}

std::optional<absl::Duration> DayCall::Waited() const {
  if (!scores) return summary.timings.queue;
  if (!status.ok()) return std::nullopt;
  return score.timings.queue;
}

absl::Status Send(const std::shared_ptr<DayCall>& call, SimulatedService& service, const Clock& clock) {
  call->submitted = clock.Now();
  auto listener = std::make_shared<DayListener>(call, clock);
  if (call->scores) {
    ScoringRequest request{.context = call->context, .tokens = call->prompt};
    return service.Score(std::move(request), std::move(listener));
  }
  GenerationRequest request;
  request.context = call->context;
  request.prompt = call->prompt;
  request.session = call->session;
  request.max_tokens = call->max_tokens;
  request.sampling = call->sampling;
  if (!call->stop_string.empty()) request.stop_strings = {call->stop_string};
  return service.Generate(std::move(request), std::move(listener));
}

void CheckEnd(const DayCall& call, const FakeLanguageModel& model, const Vocabulary& vocabulary, bool by_force) {
  switch (call.status.code()) {
    case absl::StatusCode::kOk:
      EXPECT_FALSE(call.poisonous());
      EXPECT_LE(call.submitted, call.ended_at);
      break;
    case absl::StatusCode::kCancelled:
      EXPECT_TRUE(call.context.cancelled->load());
      break;
    case absl::StatusCode::kDeadlineExceeded:
      if (call.ended_at < call.context.deadline) CheckTooLate(call, call.ended_at);
      break;
    case absl::StatusCode::kUnavailable:
      EXPECT_TRUE(by_force);
      break;
    case absl::StatusCode::kInternal:
      EXPECT_TRUE(call.poisonous());
      break;
    default:
      ADD_FAILURE() << call.status;
  }
  if (!call.scores) {
    CheckGeneration(call, model, vocabulary);
  } else if (call.status.ok()) {
    CheckScore(call, model);
  }
}

void CheckRefusal(const DayCall& call, const absl::Status& refusal, absl::Time now) {
  if (absl::IsDeadlineExceeded(refusal)) return CheckTooLate(call, now);
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted) << refusal;
  const std::optional<Refusal> details = GetRefusal(refusal);
  ASSERT_TRUE(details.has_value()) << refusal;
  EXPECT_GT(details->retry_after, absl::ZeroDuration());
  EXPECT_LT(details->retry_after, absl::Minutes(2));
  EXPECT_GT(details->queue_depth, 0);
}

}  // namespace longshort::core
