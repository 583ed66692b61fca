#include "server/rpc/rpc_call.h"

#include <grpc/grpc.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "server/rpc/call_metadata.h"
#include "server/rpc/refusal_details.h"

namespace longshort {
namespace {

constexpr char kIdKey[] = "x-request-id";

}  // namespace

RpcCall::RpcCall(const CallEnvironment& environment, const CallNames& names, grpc::CallbackServerContext& context)
    : context_(context),
      record_(environment, names,
              ReadCallMetadata(
                  context, {.certificates = environment.access != nullptr && environment.access->uses_certificates(),
                            .authority = environment.tracer != nullptr})) {}

void RpcCall::BeginAnswer() {
  record_.trace().BeginMessage();
  if (!std::exchange(answering_, true)) context_.AddInitialMetadata(kIdKey, record_.engine_context().id);
}

void RpcCall::CancelSlowReader() {
  record_.CancelSlowReader();
  context_.TryCancel();
}

std::shared_ptr<PauseWatch> RpcCall::WatchAnswer(std::weak_ptr<const void> owner) {
  // Once the call is finished, gRPC may destroy its context at any time, but not the call while somebody holds it.
  grpc_call_ref(context_.c_call());
  const std::shared_ptr<grpc_call> call(context_.c_call(), grpc_call_unref);
  const CallEnvironment& environment = record_.environment();
  return PauseWatch::Start(environment.slow_reader_timeout, [this, call, &environment, owner = std::move(owner)] {
    const std::shared_ptr<const void> keep = owner.lock();
    if (keep == nullptr) return;
    const char* rpc = record_.names().rpc();
    environment.metrics.CountSlowReader(rpc);
    LogFields fields = {{"id", record_.engine_context().id}, {"rpc", std::string(rpc)}};
    record_.trace().AppendTo(fields);
    environment.log.Info("cancelled: the client did not take its answer within --slow-reader-timeout",
                         std::move(fields));
    grpc_call_cancel(call.get(), nullptr);
  });
}

grpc::Status RpcCall::Finish(const absl::Status& work_status) {
  const absl::Status status = record_.Finish(work_status);
  context_.AddTrailingMetadata(kIdKey, record_.engine_context().id);
  if (LoadReport* load = record_.environment().load_report; load != nullptr) {
    context_.AddTrailingMetadata("endpoint-load-metrics-bin", load->Get());
  }
  if (status.ok()) return BeginAnswer(), grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::optional<Refusal> refusal = GetRefusal(status);
  if (!refusal.has_value()) return grpc::Status(code, std::string(status.message()));
  context_.AddTrailingMetadata("longshort-queue-depth", absl::StrCat(refusal->queue_depth));
  context_.AddTrailingMetadata("grpc-retry-pushback-ms", RetryPushback(*refusal));
  return grpc::Status(code, std::string(status.message()), RefusalDetails(status, *refusal));
}

}  // namespace longshort
