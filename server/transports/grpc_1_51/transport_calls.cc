#include "server/transports/grpc_1_51/transport_calls.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"

namespace longshort::server {
namespace {

using nlohmann::json;

// A socket gets its number before it is listed, so a later one may be listed earlier.
constexpr intptr_t kListedLate = 1024;
// Numbers of closed sockets that may be kept, in addition to as many as open ones, before all are read again.
constexpr size_t kMaxClosed = 256;

// Parses and frees a text that gRPC allocated.
json Parse(char* text) {
  if (text == nullptr) return {};
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  gpr_free(text);
  return parsed;
}

const json& At(const json& object, const char* name) {
  static const json& nothing = *new json;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nothing : *found;
}

// Numbers are strings, and absent if 0.
int64_t Number(const json& value) {
  int64_t number = 0;
  return value.is_string() && absl::SimpleAtoi(value.get_ref<const std::string&>(), &number) ? number : 0;
}

// "chttp2 ipv4:127.0.0.1:1234"
std::string PeerIn(const json& name) {
  if (!name.is_string()) return "";
  const auto& text = name.get_ref<const std::string&>();
  return text.substr(text.rfind(' ') + 1);
}

}  // namespace

void TransportCalls::BeginPoll(size_t connections) {
  may_find_ = true;
  if (sockets_.size() <= 2 * connections + kMaxClosed) return;
  sockets_.clear();
  next_socket_ = 0;
}

void TransportCalls::FindSockets() {
  may_find_ = false;
  const json servers = Parse(grpc_channelz_get_servers(0));
  intptr_t next = next_socket_;
  for (const json& server : At(servers, "server")) {
    const int64_t id = Number(At(At(server, "ref"), "serverId"));
    intptr_t from = std::max<intptr_t>(0, next_socket_ - kListedLate);
    for (bool more = true; more;) {
      const json page = Parse(grpc_channelz_get_server_sockets(id, from, 0));
      more = At(page, "end") != json(true) && !At(page, "socketRef").empty();
      for (const json& socket : At(page, "socketRef")) {
        const auto number = static_cast<intptr_t>(Number(At(socket, "socketId")));
        sockets_[PeerIn(At(socket, "name"))] = number;
        from = std::max(from, number + 1);
      }
    }
    next = std::max(next, from);
  }
  next_socket_ = next;
}

int64_t TransportCalls::CountOpen() const {
  int64_t open = 0;
  const json servers = Parse(grpc_channelz_get_servers(0));
  for (const json& server : At(servers, "server")) {
    const json& data = At(server, "data");
    open += Number(At(data, "callsStarted")) - Number(At(data, "callsSucceeded")) - Number(At(data, "callsFailed"));
  }
  return open;
}

std::optional<ConnectionCalls> TransportCalls::Read(const std::string& peer) {
  auto found = sockets_.find(peer);
  if (found == sockets_.end()) {
    if (may_find_) FindSockets();
    found = sockets_.find(peer);
    if (found == sockets_.end()) return std::nullopt;
  }
  const json socket = Parse(grpc_channelz_get_socket(found->second));
  if (!At(socket, "socket").is_object()) {
    sockets_.erase(found);
    return std::nullopt;
  }
  const json& data = At(At(socket, "socket"), "data");
  const int64_t ended = Number(At(data, "streamsSucceeded")) + Number(At(data, "streamsFailed"));
  const int64_t begun = Number(At(data, "streamsStarted"));
  return ConnectionCalls{.begun = begun, .open = begun - ended, .messages = Number(At(data, "messagesReceived"))};
}

}  // namespace longshort::server
