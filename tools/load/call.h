// One call to the server. It uses gRPC's callback API, so no thread blocks on it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "open_inference/v2/service.grpc.pb.h"
#include "tools/load/request_source.h"
#include "tools/load/summary.h"
#include "tools/load/workload.h"

namespace longshort::load {

// Measures the time since the run's start. Thread-safe.
class RunClock final {
 public:
  absl::Duration Now() const { return absl::FromChrono(std::chrono::steady_clock::now() - start_); }
  std::chrono::steady_clock::time_point At(absl::Duration since_start) const {
    return start_ + absl::ToChronoNanoseconds(since_start);
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One connection's stubs, one for each protocol.
struct Stubs {
  std::unique_ptr<v1::Inference::Stub> longshort;
  std::unique_ptr<inference::GRPCInferenceService::Stub> open_inference;
};

class Call {
 public:
  // Called once, on a gRPC thread, when the call has ended. It may destroy the call.
  using OnEnd = std::function<void(Call&)>;

  virtual ~Call() = default;

  // Sends the request. REQUIRES: called once; the call lives until `on_end` is called.
  virtual void Start() = 0;
  // Ends the call with CANCELLED, unless it is over. Thread-safe.
  void Cancel() { context_.TryCancel(); }

  // Valid once the call has ended.
  CallOutcome& outcome() { return outcome_; }

 protected:
  Call(const RunClock& clock, const Workload& workload, absl::Duration planned, OnEnd on_end);

  void NoteStart();
  // Records the arrival of a message with `count` tokens.
  void NoteTokens(int64_t count) { outcome_.arrivals.push_back({clock_.Now(), count}); }
  // Calls `on_end`, which may destroy this call.
  void End(const grpc::Status& status);

  grpc::ClientContext& context() { return context_; }

 private:
  const RunClock& clock_;
  const absl::Duration deadline_;
  OnEnd on_end_;
  grpc::ClientContext context_;
  CallOutcome outcome_;
};

// `clock` and `stubs` must outlive the call.
std::unique_ptr<Call> MakeCall(const RunClock& clock, const Stubs& stubs, const Workload& workload, Request request,
                               absl::Duration planned, Call::OnEnd on_end);

}  // namespace longshort::load
