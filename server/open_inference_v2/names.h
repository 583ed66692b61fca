// How the Open Inference Protocol calls its RPCs and what a request has: inputs by their names, the rest by the field.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

class OpenInferenceNames final : public CallNames {
 public:
  // A literal.
  explicit constexpr OpenInferenceNames(const char* method, bool observes = false)
      : OpenInferenceNames(method, AfterSlash(method), observes) {}
  constexpr OpenInferenceNames(const char* method, const char* rpc, bool observes = false)
      : method_(method), rpc_(rpc), observes_(observes) {}

  const char* rpc() const override { return rpc_; }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return "ModelStreamInfer"; }
  bool observes() const override { return observes_; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const method_;
  const char* const rpc_;
  const bool observes_;
};

inline const OpenInferenceNames kServerLiveNames("inference.GRPCInferenceService/ServerLive", true);
inline const OpenInferenceNames kServerReadyNames("inference.GRPCInferenceService/ServerReady", true);
inline const OpenInferenceNames kModelReadyNames("inference.GRPCInferenceService/ModelReady", true);
inline const OpenInferenceNames kServerMetadataNames("inference.GRPCInferenceService/ServerMetadata");
inline const OpenInferenceNames kModelMetadataNames("inference.GRPCInferenceService/ModelMetadata");
inline const OpenInferenceNames kModelConfigNames("inference.GRPCInferenceService/ModelConfig");
inline const OpenInferenceNames kModelStatisticsNames("inference.GRPCInferenceService/ModelStatistics");
inline const OpenInferenceNames kModelInferNames("inference.GRPCInferenceService/ModelInfer");
inline const OpenInferenceNames kModelStreamInferNames("inference.GRPCInferenceService/ModelStreamInfer");
// One request of a stream, which counts as a call of its own.
inline const OpenInferenceNames kStreamedRequestNames("inference.GRPCInferenceService/ModelStreamInfer.request");
inline const OpenInferenceNames kRepositoryIndexNames("inference.GRPCInferenceService/RepositoryIndex");
inline const OpenInferenceNames kRepositoryModelLoadNames("inference.GRPCInferenceService/RepositoryModelLoad");
inline const OpenInferenceNames kRepositoryModelUnloadNames("inference.GRPCInferenceService/RepositoryModelUnload");
inline const OpenInferenceNames kSystemMemoryStatusNames("inference.GRPCInferenceService/SystemSharedMemoryStatus",
                                                         "SharedMemory");
inline const OpenInferenceNames kSystemMemoryRegisterNames("inference.GRPCInferenceService/SystemSharedMemoryRegister",
                                                           "SharedMemory");
inline const OpenInferenceNames kSystemMemoryUnregisterNames(
    "inference.GRPCInferenceService/SystemSharedMemoryUnregister", "SharedMemory");
inline const OpenInferenceNames kCudaMemoryStatusNames("inference.GRPCInferenceService/CudaSharedMemoryStatus",
                                                       "SharedMemory");
inline const OpenInferenceNames kCudaMemoryRegisterNames("inference.GRPCInferenceService/CudaSharedMemoryRegister",
                                                         "SharedMemory");
inline const OpenInferenceNames kCudaMemoryUnregisterNames("inference.GRPCInferenceService/CudaSharedMemoryUnregister",
                                                           "SharedMemory");
inline const OpenInferenceNames kTraceSettingNames("inference.GRPCInferenceService/TraceSetting");
inline const OpenInferenceNames kLogSettingsNames("inference.GRPCInferenceService/LogSettings");

// The inputs and outputs of models, and the parameters of requests.
inline constexpr char kPromptInput[] = "prompt";
inline constexpr char kDocumentInput[] = "document";
inline constexpr char kSecondDocumentInput[] = "second_document";
inline constexpr char kImageInput[] = "image";

}  // namespace longshort
