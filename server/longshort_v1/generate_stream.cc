#include "server/longshort_v1/generate_stream.h"

#include <memory>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/handlers/generate.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/names.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/stream_writer.h"

namespace longshort {
namespace {

// Keeps what the tokens stand for, which comes with the start.
class EventSerializer {
 public:
  absl::StatusOr<grpc::ByteBuffer> operator()(StreamEvent event) {
    if (const auto* start = std::get_if<StreamStart>(&event); start != nullptr) tokenizer_ = start->tokenizer;
    return SerializeMessage(ToMessage(std::move(event), tokenizer_.get()));
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// An error means that nothing was begun.
absl::Status Begin(const grpc::ByteBuffer& bytes, const std::shared_ptr<StreamWriter>& writer) {
  LS_RETURN_IF_ERROR(writer->record().Admit());
  LS_ASSIGN_OR_RETURN(const v1::GenerateRequest request, TakeMessage<v1::GenerateRequest>(bytes));
  return GenerateStream(writer->record(), FromMessage(request), writer);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream(const CallEnvironment& environment,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request) {
  const std::shared_ptr<StreamWriter> writer =
      StreamWriter::Make(environment, kGenerateStreamNames, context, EventSerializer());
  if (absl::Status status = Begin(*request, writer); !status.ok()) writer->Close(status);
  return writer.get();
}

}  // namespace longshort
