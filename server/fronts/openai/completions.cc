#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/call/call.h"
#include "server/call/generation_stream.h"
#include "server/calls/field_error.h"
#include "server/fronts/openai/completion_answer.h"
#include "server/fronts/openai/names.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

class CompletionsCodec final : public HttpCodec {
 public:
  explicit CompletionsCodec(const RequestLimits& limits) : limits_(limits) {}

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    LS_RETURN_IF_ERROR(ReadCompletions(request, limits_, message, meter));
    describes_tokens_ = static_cast<const openai::CompletionsRequest&>(message).has_logprobs();
    return absl::OkStatus();
  }

  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }
  // A described token counts as 12 bytes, and takes 32 in the result and 60 as JSON.
  size_t copies() const override { return describes_tokens_ ? 16 : HttpCodec::copies(); }

  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  std::string WriteEnd(const absl::Status& status) override {
    return ServerSentEvent(status.ok() ? "[DONE]" : OpenAiError(status).body);
  }

 private:
  const RequestLimits& limits_;
  bool describes_tokens_ = false;
};

GenerateCall GenerationOf(const openai::CompletionsRequest& request, const ModelReference& model) {
  GenerateCall call{.model = model,
                    .max_tokens = request.max_tokens(),
                    .completions = request.n(),
                    .sampling = {.temperature = request.temperature(),
                                 .top_k = request.top_k(),
                                 .top_p = request.top_p(),
                                 .min_p = request.min_p(),
                                 .repetition_penalty = request.repetition_penalty(),
                                 .frequency_penalty = request.frequency_penalty(),
                                 .presence_penalty = request.presence_penalty(),
                                 .logit_bias = {request.logit_bias().begin(), request.logit_bias().end()}},
                    .stop = {request.stop().begin(), request.stop().end()},
                    .token_log_probabilities = request.has_logprobs(),
                    .top_alternatives = request.logprobs(),
                    .echo = request.echo()};
  for (const openai::Prompt& prompt : request.prompts()) call.prompts.push_back(FromMessage(prompt));
  if (request.has_seed()) call.seed = request.seed();
  return call;
}

ScoreCall ScoringOf(const openai::CompletionsRequest& request, const ModelReference& model, bool describe_tokens) {
  ScoreCall call{.model = model,
                 .options = {.token_log_probabilities = describe_tokens, .top_alternatives = request.logprobs()}};
  for (const openai::Prompt& prompt : request.prompts()) call.texts.push_back(FromMessage(prompt));
  return call;
}

// Whether the byte begins a character of UTF-8.
bool IsBeginning(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Shortens the prompts to their last `kept_tokens` tokens.
absl::Status KeepLastTokens(const models::Tokenizer* tokenizer, const RequestLimits& limits,
                            openai::CompletionsRequest& request) {
  if (request.kept_tokens() == 0) return absl::OkStatus();
  if (request.kept_tokens() == kMostTokens) request.set_kept_tokens(limits.prompt_tokens);
  LS_RETURN_IF_ERROR(
      CheckFieldRange([] { return "truncate_prompt_tokens"; }, request.kept_tokens(), 1, limits.prompt_tokens));
  constexpr int64_t kMaxTokenBytes = 4;  // a character's
  for (openai::Prompt& prompt : *request.mutable_prompts()) {
    if (prompt.has_text() && tokenizer != nullptr) {
      const std::string_view text = prompt.text();
      size_t begin = text.size() - std::min<size_t>(text.size(), kMaxTokenBytes * request.kept_tokens());
      while (begin < text.size() && !IsBeginning(text[begin])) ++begin;
      LS_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode(text.substr(begin)));
      prompt.mutable_ids()->mutable_ids()->Assign(ids.begin(), ids.end());
    }
    if (!prompt.has_ids()) continue;
    auto& ids = *prompt.mutable_ids()->mutable_ids();
    ids.erase(ids.begin(), ids.end() - std::min<int64_t>(ids.size(), request.kept_tokens()));
  }
  return absl::OkStatus();
}

// A request that generates nothing is answered with its prompts' text, which is many times longer than their ids.
absl::Status CheckEchoedIds(const openai::CompletionsRequest& request, const RequestLimits& limits) {
  int64_t ids = 0;
  for (const openai::Prompt& prompt : request.prompts()) ids += prompt.ids().ids_size();
  if (request.max_tokens() > 0) return absl::OkStatus();
  return CheckFieldRange([] { return "number of ids of prompt without max_tokens"; }, ids, 0, limits.described_tokens);
}

class CompletionsWork final : public GenerationStream {
 public:
  explicit CompletionsWork(Call& call) : GenerationStream(call) {}

 private:
  absl::Status Take(google::protobuf::Message& message) override {
    auto& request = static_cast<openai::CompletionsRequest&>(message);
    CallRecord& record = call_.record();
    LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                        record.FindLanguageModel(ReferenceOf(request.model())));
    LS_RETURN_IF_ERROR(KeepLastTokens(model->tokenizer.get(), record.environment().limits, request));
    LS_RETURN_IF_ERROR(CheckEchoedIds(request, record.environment().limits));
    answer_.emplace(request, record, *model);
    streams_ = request.stream();
    const ModelReference reference = record.answering_model();
    if (request.max_tokens() > 0 && streams_) return GenerateStream(record, GenerationOf(request, reference), Sink());
    SetAtWork(true);
    const auto self = std::shared_ptr<CompletionsWork>(call_.shared_from_this(), this);
    const absl::Status status =
        request.max_tokens() > 0
            ? Generate(record, GenerationOf(request, reference),
                       [self](absl::StatusOr<GenerateResult> result) { self->Answer(std::move(result)); })
            : ScoreText(record, ScoringOf(request, reference, request.has_logprobs() || model->tokenizer == nullptr),
                        [self](absl::StatusOr<ScoreResult> result) { self->Answer(std::move(result)); });
    if (!status.ok()) SetAtWork(false);
    return status;
  }

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

  void SetAtWork(bool at_work) {
    const MutexLock lock(call_.mutex());
    at_work_ = at_work;
  }

  bool streams_ = false;                    // set by Take, before the work begins
  std::optional<CompletionAnswer> answer_;  // likewise
  bool at_work_ ABSL_GUARDED_BY(call_.mutex()) = false;
  std::deque<CallAnswer> whole_ ABSL_GUARDED_BY(call_.mutex());
};

}  // namespace

std::unique_ptr<CallWork> MakeCompletions(Call& call) { return std::make_unique<CompletionsWork>(call); }

std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits) {
  return std::make_unique<CompletionsCodec>(limits);
}

}  // namespace longshort::server
