// How the Open Inference Protocol calls its RPCs and what a request has: inputs by their names, the rest by the field.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

class OpenInferenceNames final : public CallNames {
 public:
  // The names are literals.
  explicit constexpr OpenInferenceNames(const char* method, RpcAccess access = {.scope = Scope::kInfer})
      : OpenInferenceNames(method, AfterSlash(method), access) {}
  constexpr OpenInferenceNames(const char* method, const char* rpc, RpcAccess access)
      : method_(method), rpc_(rpc), access_(access) {}

  const char* rpc() const override { return rpc_; }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return "ModelStreamInfer"; }
  bool observes() const override { return access_.scope == Scope::kObserve; }
  RpcAccess access() const override { return access_; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const method_;
  const char* const rpc_;
  const RpcAccess access_;
};

// One request of a stream, which counts as a call of its own.
inline const OpenInferenceNames kStreamedRequestNames("inference.GRPCInferenceService/ModelStreamInfer.request");

// The inputs and outputs of models, and the parameters of requests.
inline constexpr char kPromptInput[] = "prompt";
inline constexpr char kDocumentInput[] = "document";
inline constexpr char kSecondDocumentInput[] = "second_document";
inline constexpr char kImageInput[] = "image";

}  // namespace longshort
