#include "server/http_rpc/connect_front.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http_rpc/connect_codec.h"
#include "server/http_rpc/http_call.h"

namespace longshort::server {
HttpFront ConnectFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs) {
  std::unordered_map<std::string, const Rpc*> paths;
  for (const Rpc& rpc : rpcs) paths.emplace(absl::StrCat("/", rpc.names.method()), &rpc);
  return [&environment, paths = std::move(paths)](const HttpRequest& head) -> std::optional<HttpPlan> {
    const auto found = paths.find(head.path);
    if (found == paths.end()) return std::nullopt;
    const Rpc& rpc = *found->second;
    HttpPlan plan;
    plan.methods = {"POST"};
    if (rpc.side_effect_free) plan.methods.emplace_back("GET");
    plan.write_error = ConnectError;
    plan.is_call = !rpc.names.observes();
    plan.serve = [&environment, &rpc](const std::shared_ptr<HttpExchange>& exchange) {
      absl::StatusOr<std::unique_ptr<HttpCodec>> codec =
          MakeConnectCodec(rpc, exchange->request(), environment.limits.message_bytes);
      if (codec.ok()) {
        return HttpCall::Start(environment, rpc, exchange, *std::move(codec),
                               MaxJsonBodyBytes(environment.limits.message_bytes));
      }
      exchange->Answer(ConnectError(codec.status()));
    };
    return plan;
  };
}

}  // namespace longshort::server
