// A unary call that is answered when its work is done, by whatever thread that is.
#pragma once

#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "server/rpc/unary_call.h"

namespace longshort {

// `Begin` is callable as absl::Status(CallRecord&, Request, Answer): it begins the work. After OK the Answer is called
// once, then or later; an error ends the call at once.
template <typename Request, typename Begin>
class DeferredCall final : public UnaryCall {
 public:
  // Ends the call. Holds it until then.
  class Answer {
   public:
    explicit Answer(std::shared_ptr<DeferredCall> call) : call_(std::move(call)) {}

    template <typename Message>
    void operator()(const absl::StatusOr<Message>& message) const {
      if (!message.ok()) return call_->FinishWithError(message.status());
      call_->FinishWith(*message);
    }

   private:
    std::shared_ptr<DeferredCall> call_;
  };

  DeferredCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
               const CallNames& names, Begin begin)
      : UnaryCall(environment, names, context, response), begin_(std::move(begin)) {}

 private:
  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(Request request, TakeMessage<Request>(bytes));
    return begin_(record(), std::move(request), Answer(std::static_pointer_cast<DeferredCall>(self())));
  }

  Begin begin_;
};

template <typename Request, typename Begin>
grpc::ServerUnaryReactor* AnswerLater(const CallEnvironment& environment, const CallNames& names,
                                      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response, Begin begin) {
  return UnaryCall::Start<DeferredCall<Request, Begin>>(environment, context, request, response, names,
                                                        std::move(begin));
}

}  // namespace longshort
