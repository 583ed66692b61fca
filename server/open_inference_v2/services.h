// The service of the Open Inference Protocol: which function answers which RPC.
#pragma once

#include "open_inference/v2/service.grpc.pb.h"
#include "server/admission/call_environment.h"

namespace longshort {

// Every method in the callback form that takes bytes (see server/rpc/message_bytes.h).
template <template <typename> typename... Methods>
struct RawMethods;
template <>
struct RawMethods<> {
  using Service = inference::GRPCInferenceService::Service;
};
template <template <typename> typename First, template <typename> typename... Others>
struct RawMethods<First, Others...> {
  using Service = First<typename RawMethods<Others...>::Service>;
};

using OpenInference = inference::GRPCInferenceService;
using RawOpenInferenceService = RawMethods<
    OpenInference::WithRawCallbackMethod_ServerLive, OpenInference::WithRawCallbackMethod_ServerReady,
    OpenInference::WithRawCallbackMethod_ModelReady, OpenInference::WithRawCallbackMethod_ServerMetadata,
    OpenInference::WithRawCallbackMethod_ModelMetadata, OpenInference::WithRawCallbackMethod_ModelInfer,
    OpenInference::WithRawCallbackMethod_ModelConfig, OpenInference::WithRawCallbackMethod_ModelStatistics,
    OpenInference::WithRawCallbackMethod_RepositoryIndex, OpenInference::WithRawCallbackMethod_RepositoryModelLoad,
    OpenInference::WithRawCallbackMethod_RepositoryModelUnload,
    OpenInference::WithRawCallbackMethod_SystemSharedMemoryStatus,
    OpenInference::WithRawCallbackMethod_SystemSharedMemoryRegister,
    OpenInference::WithRawCallbackMethod_SystemSharedMemoryUnregister,
    OpenInference::WithRawCallbackMethod_CudaSharedMemoryStatus,
    OpenInference::WithRawCallbackMethod_CudaSharedMemoryRegister,
    OpenInference::WithRawCallbackMethod_CudaSharedMemoryUnregister, OpenInference::WithRawCallbackMethod_TraceSetting,
    OpenInference::WithRawCallbackMethod_LogSettings, OpenInference::WithRawCallbackMethod_ModelStreamInfer>::Service;

class OpenInferenceService final : public RawOpenInferenceService {
 public:
  // `environment` must outlive the service.
  explicit OpenInferenceService(const CallEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelLoad(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelUnload(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryStatus(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryRegister(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryUnregister(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryStatus(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryRegister(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryUnregister(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* TraceSetting(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* LogSettings(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* context) override;

 private:
  const CallEnvironment& environment_;
};

}  // namespace longshort
