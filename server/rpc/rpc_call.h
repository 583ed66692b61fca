// One call over gRPC: its record, and what only gRPC knows of it: metadata in and out, cancellation, status.
//
// Thread: one thread at a time, but for what its record takes from any.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/status.h"
#include "server/admission/call_record.h"
#include "server/rpc/pause_watch.h"

namespace longshort {

class RpcCall {
 public:
  // `context` must outlive Finish.
  RpcCall(const CallEnvironment& environment, const CallNames& names, grpc::CallbackServerContext& context);

  CallRecord& record() { return record_; }

  // To be called before each message begins to be written. Before the first one it sends the call's id before it, in
  // the initial metadata. A client takes that for the answer's beginning, and tries no such call again; so calls that
  // end without a message have their id in the trailing metadata only.
  void BeginAnswer();

  // Cancels work and call, because the client took nothing for --slow-reader-timeout: a status would wait behind what
  // nobody reads. Finish, which must come later, tells that, whatever its status.
  void CancelSlowReader();
  // The same of an answer that gRPC keeps, when the call is finished, until the client has room for it: cancels the
  // call when that takes as long, unless the watch or `owner`, which has the call, is gone before. To be called
  // before Finish, whose status nobody can change any more.
  std::shared_ptr<PauseWatch> WatchAnswer(std::weak_ptr<const void> owner);

  // Ends the record, and tells the client the call's id, and when to come back if it was refused for want of room. To
  // be called once, right before gRPC is told the status that this returns.
  grpc::Status Finish(const absl::Status& work_status);

 private:
  grpc::CallbackServerContext& context_;
  CallRecord record_;
  bool answering_ = false;
};

}  // namespace longshort
