#include "server/rpc/generate_stream.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/answers.h"
#include "server/requests/generate_request.h"
#include "server/rpc/completion_translator.h"
#include "server/rpc/fan_out.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/stream_writer.h"

namespace longshort {
namespace {

// What the completions of one stream share. Held by their listeners, and so as long as the engine works for the stream.
class StreamWork {
 public:
  StreamWork(std::shared_ptr<StreamWriter> writer, std::shared_ptr<const ServedLanguageModel> model,
             int32_t completions)
      : writer_(std::move(writer)),
        model_(std::move(model)),
        fan_out_(completions + 1, writer_->record().engine_context().cancelled) {}

  StreamWriter& writer() { return *writer_; }
  const ServedLanguageModel& model() const { return *model_; }
  FanOut& fan_out() { return fan_out_; }

  void AddSummary(const GenerationSummary& summary) {
    const std::lock_guard lock(mutex_);
    usage_.set_prompt_tokens(usage_.prompt_tokens() + summary.prompt_tokens);
    usage_.set_generated_tokens(usage_.generated_tokens() + summary.generated_tokens);
    usage_.set_cached_tokens(usage_.cached_tokens() + summary.reused_tokens);
    session_tokens_ = summary.session_tokens;
    writer_->record().AddWork(summary.prompt_tokens, summary.generated_tokens, summary.timings);
  }

  // When every part has ended.
  void End() {
    if (fan_out_.status().ok()) {
      v1::StreamSummary summary;
      *summary.mutable_usage() = usage_;
      if (session_tokens_ > 0) summary.set_session_tokens(session_tokens_);
      writer_->Push([&](StreamEvents& events) { events.PushSummary(std::move(summary)); });
    }
    writer_->Close(fan_out_.status());
  }

 private:
  const std::shared_ptr<StreamWriter> writer_;
  const std::shared_ptr<const ServedLanguageModel> model_;
  FanOut fan_out_;
  std::mutex mutex_;
  v1::Usage usage_;
  int64_t session_tokens_ = 0;  // a stream with a session has one completion
};

class StreamedCompletion final : public GenerationListener {
 public:
  StreamedCompletion(std::shared_ptr<StreamWork> work, int32_t index, const GenerationPlan& plan)
      : work_(std::move(work)), translator_(index, work_->model(), plan) {
    Push(translator_.Echo(plan.echo));
  }

  void OnPromptScored(std::vector<GeneratedToken> tokens) override { Push(translator_.PromptTokens(tokens)); }

  void OnDelta(GenerationDelta delta) override {
    work_->writer().Push([&](StreamEvents& events) { events.PushDelta(translator_.Delta(delta)); });
  }

  void OnFinished(const absl::Status& status, const GenerationSummary& summary) override {
    work_->AddSummary(summary);
    work_->writer().Push([&](StreamEvents& events) {
      events.PushDelta(translator_.Rest());
      if (status.ok()) events.PushEnd(translator_.End(summary));
    });
    if (work_->fan_out().Finished(status)) work_->End();
  }

 private:
  void Push(std::vector<v1::CompletionDelta> deltas) {
    if (deltas.empty()) return;
    work_->writer().Push([&](StreamEvents& events) {
      for (v1::CompletionDelta& delta : deltas) events.PushDelta(std::move(delta));
    });
  }

  const std::shared_ptr<StreamWork> work_;
  CompletionTranslator translator_;
};

// An error means that nothing was begun.
absl::Status Begin(const CallEnvironment& environment, const grpc::ByteBuffer& bytes,
                   const std::shared_ptr<StreamWriter>& writer) {
  CallRecord& record = writer->record();
  LS_RETURN_IF_ERROR(record.Admit());
  LS_ASSIGN_OR_RETURN(const v1::GenerateRequest request, ParseMessage<v1::GenerateRequest>(bytes));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedLanguageModel> model, record.FindLanguageModel(request.model()));
  LS_ASSIGN_OR_RETURN(GenerationPlan plan,
                      ReadGenerateRequest(request, *model, environment.limits, record.engine_context()));

  const auto count = static_cast<int32_t>(plan.requests.size());
  v1::StreamStart start;
  start.set_seed(plan.seed);
  *start.mutable_model() = record.answering_model();
  writer->Open(count, std::move(start));
  const auto work = std::make_shared<StreamWork>(writer, model, count);
  const bool ended = SubmitAll(count, work->fan_out(), [&](const CallPart& part) {
    auto listener = std::make_shared<StreamedCompletion>(work, static_cast<int32_t>(part.index), plan);
    GenerationRequest& one = plan.requests[part.index];
    one.context.part = part;
    return model->engine->Generate(std::move(one), std::move(listener));
  });
  if (ended) work->End();
  return absl::OkStatus();
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream(const CallEnvironment& environment,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request) {
  const std::shared_ptr<StreamWriter> writer = StreamWriter::Make(environment, "GenerateStream", context);
  if (absl::Status status = Begin(environment, *request, writer); !status.ok()) writer->Close(status);
  return writer.get();
}

}  // namespace longshort
