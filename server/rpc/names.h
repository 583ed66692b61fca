// How the standard services call their RPCs: in full, for others have the same short names.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/str_replace.h"
#include "server/calls/call_names.h"

namespace longshort {

class ObserverNames final : public CallNames {
 public:
  // `method` is a literal.
  explicit ObserverNames(const char* method, bool health = false)
      : method_(method), rpc_(absl::StrReplaceAll(method, {{"/", "."}})), health_(health) {}

  const char* rpc() const override { return rpc_.c_str(); }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return rpc_.c_str(); }
  bool observes() const override { return true; }
  RpcAccess access() const override { return {.scope = Scope::kObserve, .health = health_}; }
  using CallNames::Of;
  std::string Of(const FieldPath& /*path*/) const override { return ""; }
  std::string KindsOf(CallField /*field*/) const override { return ""; }

 private:
  const char* const method_;
  const std::string rpc_;
  const bool health_;
};

// Requests of the standard services name one thing each. Streams keep what they were asked, and anybody may ask: so
// requests are short. Far more than the longest name that there is.
inline constexpr size_t kMostShortRequestBytes = 4096;

}  // namespace longshort
