// One protocol's paths on the HTTP port.
#pragma once

#include <functional>
#include <optional>

#include "server/transports/http/http_exchange.h"

namespace longshort::server {

// The plan for a request; nullopt if its path is not one of the protocol's. If the path does not take the request's
// method, only `methods` and `write_error` are used. Called on the I/O thread.
using HttpFront = std::function<std::optional<HttpPlan>(const HttpRequest& head)>;

}  // namespace longshort::server
