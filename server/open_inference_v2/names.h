// How the Open Inference Protocol calls its RPCs and what a request has: inputs by their names, the rest by the field.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

class OpenInferenceNames final : public CallNames {
 public:
  // A literal.
  explicit constexpr OpenInferenceNames(const char* rpc, bool observes = false) : rpc_(rpc), observes_(observes) {}

  const char* rpc() const override { return rpc_; }
  const char* streaming_rpc() const override { return "ModelStreamInfer"; }
  bool observes() const override { return observes_; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const rpc_;
  const bool observes_;
};

inline const OpenInferenceNames kServerLiveNames("ServerLive", true);
inline const OpenInferenceNames kServerReadyNames("ServerReady", true);
inline const OpenInferenceNames kModelReadyNames("ModelReady", true);
inline const OpenInferenceNames kServerMetadataNames("ServerMetadata");
inline const OpenInferenceNames kModelMetadataNames("ModelMetadata");
inline const OpenInferenceNames kModelConfigNames("ModelConfig");
inline const OpenInferenceNames kModelStatisticsNames("ModelStatistics");
inline const OpenInferenceNames kModelInferNames("ModelInfer");
inline const OpenInferenceNames kModelStreamInferNames("ModelStreamInfer");
// One request of a stream, which counts as a call of its own.
inline const OpenInferenceNames kStreamedRequestNames("ModelStreamInfer.request");
inline const OpenInferenceNames kRepositoryIndexNames("RepositoryIndex");
inline const OpenInferenceNames kRepositoryModelLoadNames("RepositoryModelLoad");
inline const OpenInferenceNames kRepositoryModelUnloadNames("RepositoryModelUnload");
inline const OpenInferenceNames kSharedMemoryNames("SharedMemory");
inline const OpenInferenceNames kTraceSettingNames("TraceSetting");
inline const OpenInferenceNames kLogSettingsNames("LogSettings");

// The inputs and outputs of models, and the parameters of requests.
inline constexpr char kPromptInput[] = "prompt";
inline constexpr char kDocumentInput[] = "document";
inline constexpr char kSecondDocumentInput[] = "second_document";
inline constexpr char kImageInput[] = "image";

}  // namespace longshort
