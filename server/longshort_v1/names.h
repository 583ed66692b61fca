// How longshort.v1 calls its RPCs and their fields.
#pragma once

#include <string>

#include "server/calls/call_names.h"

namespace longshort {

// The names of one RPC of longshort.v1.
class V1Names final : public CallNames {
 public:
  // The names are literals.
  constexpr V1Names(const char* method, Scope scope, const char* session_id = "session_id")
      : method_(method), rpc_(AfterSlash(method)), scope_(scope), session_id_(session_id) {}

  const char* rpc() const override { return rpc_; }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return "GenerateStream"; }
  RpcAccess access() const override { return {.scope = scope_}; }
  using CallNames::Of;
  std::string Of(const FieldPath& path) const override;
  std::string KindsOf(CallField field) const override;

 private:
  const char* const method_;
  const char* const rpc_;
  const Scope scope_;
  const char* const session_id_;  // RPCs name the session in different places
};

}  // namespace longshort
