#include "server/grpc_1_51/goaway.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "absl/synchronization/notification.h"

// What stands below is gRPC's own, and looked at for this version only.
static_assert(GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51,
              "look whether this version of gRPC still has grpc_core::Server::SendGoaways, or a public form of it");

namespace grpc_core {

// The object behind grpc::Server. Its library exports the function, its packages have no header for it.
class Server {
 public:
  void SendGoaways();
};

}  // namespace grpc_core

namespace longshort {

void SendGoaways(grpc::Server& server) {
  auto* core = reinterpret_cast<grpc_core::Server*>(server.c_server());
  absl::Notification sent;
  grpc::Alarm alarm;
  // Only threads of gRPC's own may call it.
  alarm.Set(gpr_now(GPR_CLOCK_MONOTONIC), [&](bool) {
    core->SendGoaways();
    sent.Notify();
  });
  sent.WaitForNotification();
}

}  // namespace longshort
