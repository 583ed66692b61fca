// grpc.reflection.v1 and v1alpha: which services there are, and the files that describe them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/admission/call_environment.h"
#include "server/rpc/held_streams.h"

namespace longshort {

// What both versions share.
struct ReflectionSite {
  // Clients ask at once what they want to know. So many streams may be open, of each connection and in all, and one
  // that says and reads nothing for so long is ended.
  static constexpr int64_t kMostOfConnection = 16, kMost = 256;
  static constexpr absl::Duration kLongestSilence = absl::Seconds(5);

  const CallEnvironment& environment;
  const std::vector<std::string> services;  // in full
  HeldStreams streams{kMostOfConnection, kMost};
};

class ReflectionV1Service final
    : public grpc::reflection::v1::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
          grpc::reflection::v1::ServerReflection::Service> {
 public:
  // `site` must outlive the service.
  explicit ReflectionV1Service(ReflectionSite& site) : site_(site) {}
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

 private:
  ReflectionSite& site_;
};

class ReflectionV1AlphaService final
    : public grpc::reflection::v1alpha::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
          grpc::reflection::v1alpha::ServerReflection::Service> {
 public:
  // `site` must outlive the service.
  explicit ReflectionV1AlphaService(ReflectionSite& site) : site_(site) {}
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

 private:
  ReflectionSite& site_;
};

}  // namespace longshort
