#include "server/longshort_v1/score_texts.h"

#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/names.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/message_bytes.h"

namespace longshort {
namespace {

class Messages final : public ScoreStreamMessages {
 public:
  absl::Status Read(const grpc::ByteBuffer& bytes,
                    absl::FunctionRef<absl::Status(const StreamedText&)> take) const override {
    LS_ASSIGN_OR_RETURN(const v1::ScoreTextsRequest request, TakeMessage<v1::ScoreTextsRequest>(bytes));
    return take(FromMessage(request));
  }

  absl::StatusOr<grpc::ByteBuffer> Write(uint64_t id, const ServedModel& model,
                                         const absl::StatusOr<ScoredText>& scored) const override {
    return SerializeMessage(ToMessage(id, model, scored));
  }
};

const Messages kMessages;

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ScoreTexts(const CallEnvironment& environment,
                                                                        grpc::CallbackServerContext* context) {
  return BidirectionalStream::Start(std::make_shared<ScoreStream>(environment, kScoreTextsNames, kMessages, context));
}

}  // namespace longshort
