#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/call/call.h"
#include "server/call/generation_stream.h"
#include "server/calls/call_names.h"
#include "server/fronts/openai/completion_answer.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

GenerateCall GenerationOf(CompletionsRequest& request, ModelReference model) {
  GenerateCall call = std::move(request.call);
  call.model = std::move(model);
  for (const Prompt& prompt : request.prompts) call.prompts.push_back(ViewOf(prompt));
  return call;
}

ScoreCall ScoringOf(const CompletionsRequest& request, const ModelReference& model, bool describe_tokens) {
  ScoreCall call{
      .model = model,
      .options = {.token_log_probabilities = describe_tokens, .top_alternatives = request.call.top_alternatives}};
  for (const Prompt& prompt : request.prompts) call.texts.push_back(ViewOf(prompt));
  return call;
}

// Whether the byte begins a character of UTF-8.
bool IsBeginning(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Shortens the prompts to their last `kept_tokens` tokens.
absl::Status KeepLastTokens(const models::Tokenizer* tokenizer, const RequestLimits& limits,
                            CompletionsRequest& request) {
  if (request.kept_tokens == 0) return absl::OkStatus();
  const int64_t kept = request.kept_tokens == kMostTokens ? limits.prompt_tokens : request.kept_tokens;
  LS_RETURN_IF_ERROR(CheckFieldRange([] { return "truncate_prompt_tokens"; }, kept, 1, limits.prompt_tokens));
  constexpr int64_t kMaxTokenBytes = 4;  // a character's
  for (Prompt& prompt : request.prompts) {
    if (const auto* const whole = std::get_if<std::string>(&prompt); whole != nullptr && tokenizer != nullptr) {
      const std::string_view text = *whole;
      size_t begin = text.size() - std::min<size_t>(text.size(), kMaxTokenBytes * kept);
      while (begin < text.size() && !IsBeginning(text[begin])) ++begin;
      LS_ASSIGN_OR_RETURN(prompt, tokenizer->Encode(text.substr(begin)));
    }
    auto* const ids = std::get_if<std::vector<int32_t>>(&prompt);
    if (ids != nullptr) ids->erase(ids->begin(), ids->end() - std::min<int64_t>(ids->size(), kept));
  }
  return absl::OkStatus();
}

// A request that generates nothing is answered with its prompts' text, which is many times longer than their ids.
absl::Status CheckEchoedIds(const CompletionsRequest& request, const RequestLimits& limits) {
  if (request.call.max_tokens > 0) return absl::OkStatus();
  int64_t ids = 0;
  for (const Prompt& prompt : request.prompts) ids += static_cast<int64_t>(ViewOf(prompt).ids.size());
  return CheckFieldRange([] { return "number of ids of prompt without max_tokens"; }, ids, 0, limits.described_tokens);
}

// Whether the request is for so few completions that its work takes little time. `n` is not checked yet.
bool AsksForFew(const CompletionsRequest& request) {
  constexpr int64_t kFew = 64;  // each takes 2 us
  return request.call.completions <= kFew / std::max<int64_t>(1, static_cast<int64_t>(request.prompts.size()));
}

class CompletionsWork final : public GenerationStream {
 public:
  explicit CompletionsWork(Call& call) : GenerationStream(call) {}

 private:
  absl::Status Take() override {
    CompletionsRequest request;
    LS_RETURN_IF_ERROR(ReadFrom(call_, ReadCompletions, request));
    CallRecord& record = call_.record();
    LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                        record.FindLanguageModel(ReferenceOf(request.model)));
    LS_RETURN_IF_ERROR(KeepLastTokens(model->tokenizer.get(), record.environment().limits, request));
    LS_RETURN_IF_ERROR(CheckEchoedIds(request, record.environment().limits));
    answer_.emplace(request, record, *model);
    streams_ = request.stream;
    {
      const MutexLock lock(call_.mutex());
      at_work_ = true;
    }
    if (call_.takes_in_pool() || AsksForFew(request)) return Begin(std::move(request), *model);
    call_.RunLater([self = Self(), request = std::move(request), model]() mutable {
      static_cast<void>(self->Begin(std::move(request), *model));
      self->call_.Advance();
    });
    return absl::OkStatus();
  }

  // Begins the work of a request that was read.
  absl::Status Begin(CompletionsRequest request, const core::ServedLanguageModel& model) {
    CallRecord& record = call_.record();
    const ModelReference reference = record.answering_model();
    const bool generates = request.call.max_tokens > 0;
    const bool describes = request.call.token_log_probabilities || model.tokenizer == nullptr;
    absl::Status status;
    if (generates && streams_) {
      status = GenerateStream(record, GenerationOf(request, reference), Sink());
    } else if (generates) {
      status = Generate(record, GenerationOf(request, reference),
                        [self = Self()](absl::StatusOr<GenerateResult> result) { self->Answer(std::move(result)); });
    } else {
      status = ScoreText(record, ScoringOf(request, reference, describes),
                         [self = Self()](absl::StatusOr<ScoreResult> result) { self->Answer(std::move(result)); });
    }
    if (status.ok() && !(generates && streams_)) return status;
    const MutexLock lock(call_.mutex());
    at_work_ = false;  // the stream is open, or there is no work
    if (!status.ok()) call_.NoteEnd(status);
    return status;
  }

  std::shared_ptr<CompletionsWork> Self() { return std::shared_ptr<CompletionsWork>(call_.shared_from_this(), this); }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return at_work_ || GenerationStream::HasWork();
  }

  absl::StatusOr<std::optional<CallAnswer>> ToAnswer(StreamEvent event) override {
    return answer_->PartOf(std::move(event));
  }

  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (!streams_ || whole_.empty()) return GenerationStream::NextAnswer();
    if (call_.reader_gone()) return whole_.clear(), std::nullopt;
    return TakeWhole();
  }
  std::optional<CallAnswer> LastAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return whole_.empty() ? std::nullopt : TakeWhole();
  }

  std::optional<CallAnswer> TakeWhole() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    CallAnswer answer = std::move(whole_.front());
    whole_.pop_front();
    return answer;
  }

  // Ends the work of a request that does not stream its generation.
  template <typename Result>
  void Answer(absl::StatusOr<Result> result) {
    const absl::Status status = result.status();
    {
      const MutexLock lock(call_.mutex());
      at_work_ = false;
      if (status.ok()) Keep(*std::move(result));
      call_.NoteEnd(status);
    }
    call_.Advance();
  }

  void Keep(GenerateResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    whole_.push_back(answer_->OfResult(std::move(result)));
  }
  // A stream has the whole answer as one part, and its usage as another.
  void Keep(ScoreResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    std::optional<CallAnswer> usage;
    if (streams_) usage = answer_->UsagePart(result.usage);
    whole_.push_back(answer_->OfScores(std::move(result), streams_));
    if (usage.has_value()) whole_.push_back(*std::move(usage));
  }

  bool streams_ = false;                                 // set by Take, before the work begins
  std::optional<CompletionAnswer> answer_;               // likewise
  bool at_work_ ABSL_GUARDED_BY(call_.mutex()) = false;  // until Answer, or until the stream is open
  std::deque<CallAnswer> whole_ ABSL_GUARDED_BY(call_.mutex());
};

}  // namespace

std::unique_ptr<CallWork> MakeCompletions(Call& call) { return std::make_unique<CompletionsWork>(call); }

}  // namespace longshort::server
