#include "clients/cpp/connection_options.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/pem_files.h"
#include "base/status_macros.h"

namespace longshort::client {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

// Returns whether the address is on this machine. localhost is the only accepted name: others could resolve differently
// later.
bool IsThisMachine(absl::string_view server) {
  if (absl::StartsWith(server, "unix:") || absl::StartsWith(server, "[::1]:")) return true;
  const absl::string_view host = server.substr(0, server.rfind(':'));
  const bool is_number =
      std::all_of(host.begin(), host.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
  return host == "localhost" || (is_number && absl::StartsWith(host, "127."));
}

// gRPC would connect to port 443 of an address without a port.
bool IsHostAndPort(absl::string_view server) {
  const size_t colon = server.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = server.substr(0, colon), port = server.substr(colon + 1);
  const bool is_bracketed = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  uint32_t number = 0;
  return (is_bracketed || !absl::StrContains(host, ':')) && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), absl::ascii_isdigit) && absl::SimpleAtoi(port, &number) && number > 0 &&
         number <= std::numeric_limits<uint16_t>::max();
}

absl::Status CheckServer(const std::string& server) {
  if (server.empty()) return absl::InvalidArgumentError("--server is empty; it must be HOST:PORT");
  constexpr absl::string_view kOfGrpc[] = {"dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:", "xds:"};
  const auto begins = [&server](absl::string_view scheme) { return absl::StartsWith(server, scheme); };
  if (std::any_of(std::begin(kOfGrpc), std::end(kOfGrpc), begins)) return absl::OkStatus();
  if (const size_t end = server.find("://"); end != std::string::npos) {
    const std::string scheme = absl::AsciiStrToLower(server.substr(0, end));
    const bool encrypts = scheme == "https" || scheme == "grpcs";
    return absl::InvalidArgumentError(absl::StrCat("the server is \"", absl::CHexEscape(server),
                                                   "\"; it must be HOST:PORT of gRPC, by default port 8500, without ",
                                                   absl::CHexEscape(scheme), "://",
                                                   encrypts ? "; to encrypt give --tls or --tls-ca" : ""));
  }
  if (IsHostAndPort(server)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the server ", absl::CHexEscape(server), " is not HOST:PORT with a port from 1 to 65535"));
}

absl::Status CheckToken(const ConnectionOptions& options) {
  if (options.encrypted() || options.insecure || IsThisMachine(options.server)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file: the token would be sent unencrypted to ", options.server,
                   ": give --tls-ca=FILE or --tls to encrypt, or --insecure to send it unencrypted"));
}

absl::StatusOr<std::string> ReadAuthorization(const std::string& path) {
  const PemFile file = {.option = "--token-file", .path = path};
  const absl::StatusOr<std::string> text = ReadTextFile(path, kMaxTokenBytes);
  if (!text.ok()) return file.Wrong(absl::StrCat("cannot be read: ", text.status().message()));
  const absl::string_view token = absl::StripAsciiWhitespace(*text);
  if (token.empty() || !std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return file.Wrong("must contain one token: one line of printable ASCII characters without spaces");
  }
  return absl::StrCat("Bearer ", token);
}

absl::StatusOr<std::string> ReadAuthorities(const std::string& path) {
  LS_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                      ReadCertificates({.option = "--tls-ca", .path = path}));
  return ToPem(authorities);
}

absl::Status ReadPair(const ConnectionOptions& options, grpc::SslCredentialsOptions& ssl) {
  const PemFile certificate_file = {.option = "--tls-certificate", .path = options.tls_certificate};
  const PemFile key_file = {.option = "--tls-key", .path = options.tls_key};
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-certificate and --tls-key must be given together");
  }
  if (options.tls_certificate.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const PemPair pair, ReadPemPair(certificate_file, key_file));
  LS_RETURN_IF_ERROR(CheckValidity(certificate_file, *pair.chain.front(), absl::Now()));
  ssl.pem_private_key = ToPem(*pair.key);
  ssl.pem_cert_chain = ToPem(pair.chain);
  return absl::OkStatus();
}

}  // namespace

void ConnectionOptions::AddTo(OptionTable& table) {
  table.Add("server", "HOST:PORT", "Address of the server.", &server);
  table.AddOtherNames({"address", "endpoint", "host", "port", "target", "url"}, "--server=HOST:PORT");
  table.AddSwitch("tls", "Use TLS, and trust the CAs that this system trusts. Each option below also enables TLS.",
                  &tls);
  table.Add("tls-ca", "FILE", "PEM file of the CAs to trust instead.", &tls_ca);
  table.Add("tls-certificate", "FILE", "PEM file of the client certificate, for servers with --tls-client-ca.",
            &tls_certificate);
  table.Add("tls-key", "FILE", "PEM file of its private key. Other users must not be able to read it.", &tls_key);
  table.Add("tls-server-name", "NAME", "Name in the server's certificate, if it differs from the host in --server.",
            &tls_server_name);
  table.Add("token-file", "FILE", "File of the bearer token to send with every call, over TLS or to this machine only.",
            &token_file);
  table.AddSwitch("insecure", "Allow sending the token unencrypted to other machines.", &insecure);
}

std::shared_ptr<grpc::Channel> ClientCredentials::Connect(const std::string& server,
                                                          grpc::ChannelArguments arguments) const {
  if (!tls_server_name.empty()) arguments.SetSslTargetNameOverride(tls_server_name);
  if (!may_use_proxy) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, channel, arguments);
}

absl::StatusOr<ClientCredentials> ReadCredentials(const ConnectionOptions& options) {
  ClientCredentials credentials;
  LS_RETURN_IF_ERROR(CheckServer(options.server));
  credentials.tls_server_name = options.tls_server_name;
  if (!options.token_file.empty()) {
    LS_RETURN_IF_ERROR(CheckToken(options));
    LS_ASSIGN_OR_RETURN(credentials.authorization, ReadAuthorization(options.token_file));
  }
  credentials.may_use_proxy = options.may_use_proxy();
  if (!options.encrypted()) return credentials;
  grpc::SslCredentialsOptions ssl;
  if (!options.tls_ca.empty()) {
    LS_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadAuthorities(options.tls_ca));
  }
  LS_RETURN_IF_ERROR(ReadPair(options, ssl));
  credentials.channel = grpc::SslCredentials(ssl);
  return credentials;
}

}  // namespace longshort::client
