// How the standard services call their RPCs: in full, for others have the same short names.
#pragma once

#include <cstddef>
#include <string>

#include "server/calls/call_names.h"

namespace longshort {

class ObserverNames final : public CallNames {
 public:
  // Literals.
  constexpr ObserverNames(const char* rpc, const char* method) : rpc_(rpc), method_(method) {}

  const char* rpc() const override { return rpc_; }
  const char* method() const override { return method_; }
  const char* streaming_rpc() const override { return rpc_; }
  bool observes() const override { return true; }
  using CallNames::Of;
  std::string Of(const FieldPath& /*path*/) const override { return ""; }
  std::string KindsOf(CallField /*field*/) const override { return ""; }

 private:
  const char* const rpc_;
  const char* const method_;
};

inline const ObserverNames kHealthCheckNames("grpc.health.v1.Health.Check", "grpc.health.v1.Health/Check");
inline const ObserverNames kHealthListNames("grpc.health.v1.Health.List", "grpc.health.v1.Health/List");
inline const ObserverNames kHealthWatchNames("grpc.health.v1.Health.Watch", "grpc.health.v1.Health/Watch");
inline const ObserverNames kReflectionV1Names("grpc.reflection.v1.ServerReflection.ServerReflectionInfo",
                                              "grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
inline const ObserverNames kReflectionV1AlphaNames("grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo",
                                                   "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");

// Requests of the standard services name one thing each. Streams keep what they were asked, and anybody may ask: so
// requests are short. Far more than the longest name that there is.
inline constexpr size_t kMostShortRequestBytes = 4096;

}  // namespace longshort
