// One protocol's paths on the HTTP port.
#pragma once

#include <functional>
#include <optional>

#include "server/http/http_exchange.h"

namespace longshort::server {

// The plan for a request; nullopt if its path is not one of the protocol's. Called on the I/O thread.
using HttpFront = std::function<std::optional<HttpPlan>(const HttpRequest& head)>;

}  // namespace longshort::server
