#include "server/longshort_v1/streams.h"

#include <utility>
#include <variant>

#include "longshort/v1/inference.pb.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/generation_stream.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/score_stream.h"

namespace longshort {
namespace {

class GenerationMessages final : public GenerationStream::Messages {
 public:
  GenerateCall Read(const google::protobuf::Message& request) override {
    return FromMessage(static_cast<const v1::GenerateRequest&>(request));
  }

  // Keeps what the tokens stand for, which comes with the start.
  absl::StatusOr<grpc::ByteBuffer> Write(StreamEvent event) override {
    if (const auto* start = std::get_if<StreamStart>(&event); start != nullptr) tokenizer_ = start->tokenizer;
    return SerializeMessage(ToMessage(std::move(event), tokenizer_.get()));
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

class ScoreMessages final : public ScoreStreamMessages {
 public:
  absl::Status Read(const google::protobuf::Message& message,
                    absl::FunctionRef<absl::Status(const StreamedText&)> take) const override {
    return take(FromMessage(static_cast<const v1::ScoreTextsRequest&>(message)));
  }

  absl::StatusOr<grpc::ByteBuffer> Write(uint64_t id, const ServedModel& model,
                                         const absl::StatusOr<ScoredText>& scored) const override {
    return SerializeMessage(ToMessage(id, model, scored));
  }
};

const ScoreMessages kScoreMessages;

}  // namespace

std::unique_ptr<CallWork> MakeGenerateStream(Call& call) {
  return std::make_unique<GenerationStream>(call, std::make_unique<GenerationMessages>());
}

std::unique_ptr<CallWork> MakeScoreTexts(Call& call) { return std::make_unique<ScoreStream>(call, kScoreMessages); }

}  // namespace longshort
