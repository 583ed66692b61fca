#include "server/transports/grpc_1_51/grpc_workarounds.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

// grpc_core is private to gRPC; this use was checked for this version only.
static_assert(GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51,
              "check whether this version of gRPC still has grpc_core::Server::SendGoaways, or a public form of it");

namespace grpc_core {

// The object behind grpc::Server. gRPC's library exports the function, but Debian's packages have no header for it.
class Server {
 public:
  void SendGoaways();
};

}  // namespace grpc_core

namespace longshort::server {

void SwitchOffChunkedReads() {
  constexpr char kVariable[] = "GRPC_EXPERIMENTS";
  constexpr char kExperiment[] = "tcp_read_chunks";
  const char* set = std::getenv(kVariable);
  const std::string others = set == nullptr ? "" : set;
  if (absl::StrContains(others, kExperiment)) return;
  setenv(kVariable, absl::StrCat(others, others.empty() ? "-" : ",-", kExperiment).c_str(), 1);
}

void SwitchOffLockOrderChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void LimitTlsMemory() {
  const auto new_context = [](void* context, void*, CRYPTO_EX_DATA*, int, long, void*) {
    SSL_CTX_set_session_cache_mode(static_cast<SSL_CTX*>(context), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(static_cast<SSL_CTX*>(context), SSL_MODE_RELEASE_BUFFERS);
  };
  // OpenSSL calls it with each new context from now on.
  [[maybe_unused]] static const int index = SSL_CTX_get_ex_new_index(0, nullptr, new_context, nullptr, nullptr);
}

void SendGoaways(grpc::Server& server) {
  auto* core = reinterpret_cast<grpc_core::Server*>(server.c_server());
  absl::Notification sent;
  grpc::Alarm alarm;
  // Only gRPC's own threads may call it.
  alarm.Set(gpr_now(GPR_CLOCK_MONOTONIC), [&](bool) {
    core->SendGoaways();
    sent.Notify();
  });
  sent.WaitForNotification();
}

}  // namespace longshort::server
