// The connection options that all client programs share: address, TLS and tokens.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/option_table.h"
#include "grpcpp/grpcpp.h"

namespace longshort::client {

struct ConnectionOptions {
  // Address of the server: host:port, or any other address that gRPC takes.
  std::string server = "127.0.0.1:8500";
  // Use TLS with the CAs that this system trusts. Each of the next four options also enables TLS.
  bool tls = false;
  // PEM file of the CAs to trust instead.
  std::string tls_ca;
  // PEM files of the client's certificate and its key.
  std::string tls_certificate;
  std::string tls_key;
  // Expected name in the server's certificate, if it differs from the host in `server`.
  std::string tls_server_name;
  // File with the bearer token that every call sends.
  std::string token_file;
  // Allow sending the token unencrypted to other machines.
  bool insecure = false;

  void AddTo(OptionTable& table);
  bool encrypted() const {
    return tls || !tls_ca.empty() || !tls_certificate.empty() || !tls_key.empty() || !tls_server_name.empty();
  }
  // Whether to use a proxy from the environment, which can read unencrypted traffic: a token that is safe unencrypted
  // only on this machine must not pass through one.
  bool may_use_proxy() const { return token_file.empty() || encrypted() || insecure; }
};

// The credentials of a client.
struct ClientCredentials {
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::InsecureChannelCredentials();
  // Metadata `authorization` of every call; not sent if empty.
  std::string authorization = {};

  // See ConnectionOptions.
  std::string tls_server_name = {};
  bool may_use_proxy = true;

  std::shared_ptr<grpc::Channel> Connect(const std::string& server, grpc::ChannelArguments arguments) const;
  void Authorize(grpc::ClientContext& context) const {
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  }
};

// Reads the files of the options. Errors: INVALID_ARGUMENT naming the option, its value and the problem, including a
// server that is a URL or has no port, an expired certificate and a token that would be sent unencrypted to another
// machine.
absl::StatusOr<ClientCredentials> ReadCredentials(const ConnectionOptions& options);

// Connects to the server with these options and explains what fails, where gRPC only reports "Socket closed": the port
// is closed, only one side uses TLS, the certificate has another CA or name or has expired, the server requires or
// rejects a client certificate. Returns one sentence; empty if the connection works or the cause is unknown (addresses
// other than host:port). Takes a few seconds at most.
std::string DiagnoseConnection(const ConnectionOptions& options);

}  // namespace longshort::client
