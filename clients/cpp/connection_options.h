// How a client program reaches a server, and by what both know each other: the options of all programs that are
// clients.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/option_table.h"
#include "grpcpp/grpcpp.h"

namespace longshort::client {

struct ConnectionOptions {
  // host:port, or any other address that gRPC takes.
  std::string server = "127.0.0.1:8500";
  // Encrypted, by the authorities that this system trusts. Each of the four below asks for encryption, too.
  bool tls = false;
  // PEM file of the authorities that are trusted instead.
  std::string tls_ca;
  // PEM files of the certificate, and of its key, by which the server knows the client.
  std::string tls_certificate;
  std::string tls_key;
  // The name that the server's certificate has, if it is not that of `server`.
  std::string tls_server_name;
  // File of one token, which is sent with every call.
  std::string token_file;
  // Whether the token may be sent where others read it: unencrypted beyond this machine.
  bool insecure = false;

  void AddTo(OptionTable& table);
  bool encrypted() const {
    return tls || !tls_ca.empty() || !tls_certificate.empty() || !tls_key.empty() || !tls_server_name.empty();
  }
};

// What a client shows a server.
struct ClientCredentials {
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::InsecureChannelCredentials();
  // Metadata `authorization` of every call; empty: none.
  std::string authorization = {};

  // As ConnectionOptions has it.
  std::string tls_server_name = {};
  // Whether a proxy that the environment names may see what is sent.
  bool may_use_proxy = true;

  std::shared_ptr<grpc::Channel> Connect(const std::string& server, grpc::ChannelArguments arguments) const;
  void Authorize(grpc::ClientContext& context) const {
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  }
};

// Reads the files that the options name. Errors: INVALID_ARGUMENT naming the option, the file and what is wrong with
// it; a certificate that has expired, too; a token that others would read.
absl::StatusOr<ClientCredentials> ReadCredentials(const ConnectionOptions& options);

// Connects to the server as a client with these options would, and says what does not work, where gRPC says too little
// ("Socket closed"): nobody listens, one side alone speaks TLS, the authority or the name of a certificate is another,
// it has expired, the server wants or refuses a client's. A sentence; empty if the connection works, or nothing is
// known (addresses that are not host:port). Takes at most some seconds.
std::string DiagnoseConnection(const ConnectionOptions& options);

}  // namespace longshort::client
