// A unary call that is answered at once, on gRPC's thread, without the engine.
#pragma once

#include <utility>

#include "base/status_macros.h"
#include "server/rpc/unary_call.h"

namespace longshort {

// `Answer` is callable as absl::StatusOr<Response>(CallRecord&, const Request&).
template <typename Request, typename Answer>
class ImmediateCall final : public UnaryCall {
 public:
  ImmediateCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
                const CallNames& names, Answer answer)
      : UnaryCall(environment, names, context, response), answer_(std::move(answer)) {}

 private:
  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const Request request, TakeMessage<Request>(bytes));
    LS_ASSIGN_OR_RETURN(const auto response, answer_(record(), request));
    FinishWith(response);
    return absl::OkStatus();
  }

  Answer answer_;
};

template <typename Request, typename Answer>
grpc::ServerUnaryReactor* AnswerAtOnce(const CallEnvironment& environment, const CallNames& names,
                                       grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response, Answer answer) {
  return UnaryCall::Start<ImmediateCall<Request, Answer>>(environment, context, request, response, names,
                                                          std::move(answer));
}

}  // namespace longshort
