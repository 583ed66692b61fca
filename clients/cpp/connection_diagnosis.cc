// DiagnoseConnection: connects step by step with sockets and OpenSSL to find out what fails.
#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/pem_files.h"
#include "clients/cpp/connection_options.h"

namespace longshort::client {
namespace {

constexpr timeval kStepTimeout = {.tv_sec = 3, .tv_usec = 0};

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* connection) const { SSL_free(connection); }
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

struct Address {
  std::string host;
  std::string port;
};

// Parses "host:port" or "[host]:port", also behind "dns:" or "dns:///". Returns an empty host for any other form.
Address AddressOf(absl::string_view server) {
  if (absl::ConsumePrefix(&server, "dns:")) absl::ConsumePrefix(&server, "///");
  const size_t colon = server.rfind(':');
  if (colon == absl::string_view::npos || absl::StrContains(server, "/")) return {};
  Address address = {.host = std::string(server.substr(0, colon)), .port = std::string(server.substr(colon + 1))};
  const bool bracketed = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (bracketed) return {.host = address.host.substr(1, address.host.size() - 2), .port = address.port};
  return absl::StrContains(address.host, ":") ? Address() : address;
}

// Returns a connected socket whose operations time out after kStepTimeout; on failure sets `problem` and returns -1.
int ConnectTo(const Address& address, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &first); error != 0) {
    problem = absl::StrCat("cannot resolve the host name ", address.host, ": ", gai_strerror(error));
    return -1;
  }
  const std::unique_ptr<addrinfo, Free> found(first);
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    const int number = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &kStepTimeout, sizeof(kStepTimeout));
    setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &kStepTimeout, sizeof(kStepTimeout));
    if (number >= 0 && connect(number, one->ai_addr, one->ai_addrlen) == 0) return number;
    problem = absl::StrCat("cannot connect to ", address.host, " on port ", address.port, ": ",
                           errno == EINPROGRESS ? "timed out" : std::system_category().message(errno),
                           "; use --server=HOST:PORT for another server");
    if (number >= 0) close(number);
  }
  return -1;
}

std::string AboutHttpPort(const Address& address) {
  return absl::StrCat(
      "port ", address.port,
      " speaks HTTP/1.1, as a server's HTTP port does: give the port of gRPC (--listen), by default 8500");
}

// A TLS connection that accepts any server certificate, so that the certificate can be inspected.
class Trial final {
 public:
  Trial(const ConnectionOptions& options, const Address& address) : options_(options), address_(address) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    if (options.tls_ca.empty()) {
      SSL_CTX_set_default_verify_paths(context_.get());
    } else {
      SSL_CTX_load_verify_locations(context_.get(), options.tls_ca.c_str(), nullptr);
    }
    if (!options.tls_certificate.empty()) {
      SSL_CTX_use_certificate_chain_file(context_.get(), options.tls_certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM);
    }
    SSL_CTX_set_client_cert_cb(context_.get(), NoteThatAsked);
    connection_.reset(SSL_new(context_.get()));
    SSL_set_verify(connection_.get(), SSL_VERIFY_NONE, nullptr);
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(connection_.get(), kHttp2, sizeof(kHttp2));
    SSL_set_app_data(connection_.get(), this);
    SSL_set_tlsext_host_name(connection_.get(), name().c_str());
  }

  // Returns whether the server speaks TLS. `socket` stays the caller's.
  bool ShakeHands(int socket) {
    signal(SIGPIPE, SIG_IGN);  // the server may close the connection while OpenSSL writes; the program ends soon
    SSL_set_fd(connection_.get(), socket);
    ERR_clear_error();
    is_connected_ = SSL_connect(connection_.get()) == 1;
    if (!is_connected_) KeepError();
    return is_connected_ || was_asked_ || alert() != 0;
  }

  // Describes what is wrong with the handshake or the certificates; empty if nothing is.
  std::string Problem() {
    if (!is_connected_) return was_asked_ || IsAboutCertificates(alert()) ? AboutOwnCertificate() : AboutHandshake();
    std::string about_server = AboutServerCertificate();
    if (!about_server.empty()) return about_server;
    const unsigned char* protocol = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(connection_.get(), &protocol, &length);
    if (length == 0) return AboutHttpPort(address_);
    // A server sends its HTTP/2 settings first. If it rejects the client's certificate, it sends an alert instead.
    char byte = 0;
    ERR_clear_error();
    if (SSL_read(connection_.get(), &byte, 1) == 1) return "";
    KeepError();
    return error_ != 0 || was_asked_ ? AboutOwnCertificate() : "";
  }

 private:
  // Called when the server asks for a certificate and there is none.
  static int NoteThatAsked(SSL* connection, X509** /*certificate*/, EVP_PKEY** /*key*/) {
    static_cast<Trial*>(SSL_get_app_data(connection))->was_asked_ = true;
    return 0;
  }

  std::string name() const { return options_.tls_server_name.empty() ? address_.host : options_.tls_server_name; }

  void KeepError() {
    error_ = ERR_peek_last_error();
    why_ = TakeOpensslError();
  }
  // Returns the number of the alert by which the server ended the connection, or 0.
  int alert() const { return std::max(0, ERR_GET_REASON(error_) - SSL_AD_REASON_OFFSET); }
  static bool IsAboutCertificates(int alert) {
    return (alert >= SSL3_AD_NO_CERTIFICATE && alert <= SSL_AD_ACCESS_DENIED) || alert == SSL_AD_CERTIFICATE_REQUIRED;
  }

  std::string AboutHandshake() const {
    if (alert() == SSL_AD_NO_APPLICATION_PROTOCOL) return AboutHttpPort(address_);
    if (alert() != 0) return absl::StrCat("the server refused the TLS handshake: ", why_);
    if (error_ == 0) return "the TLS handshake timed out; perhaps the server does not use TLS on this port";
    if (ERR_GET_REASON(error_) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      return "the server closed the connection during the TLS handshake; perhaps it does not use TLS on this port";
    }
    return absl::StrCat("the server does not use TLS on this port (", why_,
                        "): if that is intended, omit --tls and --tls-...");
  }

  std::string AboutOwnCertificate() const {
    if (options_.tls_certificate.empty()) {
      return "the server requires a client certificate: give --tls-certificate and --tls-key";
    }
    return absl::StrCat("the server closed the connection after it received --tls-certificate=",
                        options_.tls_certificate, alert() != 0 ? absl::StrCat(" (", why_, ")") : "",
                        ": the server may not trust its CA, or the certificate was revoked");
  }

  std::string AboutServerCertificate() const {
    const std::unique_ptr<X509, PemFree> certificate(SSL_get1_peer_certificate(connection_.get()));
    if (certificate == nullptr) return "the server has no certificate";
    const std::string subject = absl::StrCat("the server's certificate (", SubjectOf(*certificate), ")");
    switch (const long verdict = SSL_get_verify_result(connection_.get()); verdict) {
      case X509_V_OK:
        break;
      case X509_V_ERR_CERT_HAS_EXPIRED:
      case X509_V_ERR_CERT_NOT_YET_VALID:
        return absl::StrCat(subject, " or a certificate above it ",
                            verdict == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired" : "is not valid yet",
                            ": it is valid from ", Day(X509_get0_notBefore(certificate.get())), " to ",
                            Day(X509_get0_notAfter(certificate.get())));
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return absl::StrCat(subject, " was not signed by a CA ",
                            options_.tls_ca.empty() ? "that this system trusts: give --tls-ca=FILE"
                                                    : absl::StrCat("of --tls-ca=", options_.tls_ca));
      default:
        return absl::StrCat(subject, " is not trusted: ", X509_verify_cert_error_string(verdict));
    }
    return HasName(*certificate) ? ""
                                 : absl::StrCat(subject, " is not for ", name(), ", only for ", NamesOf(*certificate),
                                                ": --server or --tls-server-name must be one of these");
  }

  bool HasName(X509& certificate) const {
    return X509_check_ip_asc(&certificate, name().c_str(), 0) == 1 ||
           X509_check_host(&certificate, name().data(), name().size(), 0, nullptr) == 1;
  }

  static std::string Day(const ASN1_TIME* time) {
    return absl::FormatTime(absl::RFC3339_sec, TimeOf(time), absl::UTCTimeZone());
  }

  static std::string NamesOf(const X509& certificate) {
    std::vector<std::string> names;
    const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
        GENERAL_NAMES_free);
    for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
      const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
      if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
      const unsigned char* const bytes = ASN1_STRING_get0_data(name->d.ia5);
      const auto length = static_cast<size_t>(ASN1_STRING_length(name->d.ia5));
      // The names are escaped: a hostile certificate could contain terminal control sequences.
      if (name->type == GEN_DNS) names.push_back(absl::CHexEscape({reinterpret_cast<const char*>(bytes), length}));
      if (name->type == GEN_IPADD && (length == sizeof(in_addr) || length == sizeof(in6_addr))) {
        char text[INET6_ADDRSTRLEN];
        names.emplace_back(inet_ntop(length == sizeof(in_addr) ? AF_INET : AF_INET6, bytes, text, sizeof(text)));
      }
    }
    return names.empty() ? "no name" : absl::StrJoin(names, ", ");
  }

  const ConnectionOptions& options_;
  const Address& address_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> connection_;
  bool is_connected_ = false;
  bool was_asked_ = false;   // the server requested a certificate, and none is configured
  unsigned long error_ = 0;  // the last error of OpenSSL
  std::string why_;          // error_ as text
};

// Returns whether a server that got the beginning of HTTP/2 answers as one of HTTP/1.
bool SpeaksHttp1(const Address& address) {
  constexpr absl::string_view kBeginning = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kHttp1 = "HTTP/1.";
  std::string problem;
  const int socket = ConnectTo(address, problem);
  if (socket < 0) return false;
  const absl::Cleanup close_socket = [socket] { close(socket); };
  char answer[kHttp1.size()] = {};
  return send(socket, kBeginning.data(), kBeginning.size(), MSG_NOSIGNAL) > 0 &&
         recv(socket, answer, sizeof(answer), MSG_WAITALL) == sizeof(answer) &&
         absl::string_view(answer, sizeof(answer)) == kHttp1;
}

}  // namespace

std::string DiagnoseConnection(const ConnectionOptions& options) {
  const Address address = AddressOf(options.server);
  if (address.host.empty()) return "";
  std::string problem;
  const int socket = ConnectTo(address, problem);
  if (socket < 0) return problem;
  const absl::Cleanup close_socket = [socket] { close(socket); };
  Trial trial(options, address);
  const bool speaks_tls = trial.ShakeHands(socket);
  if (options.encrypted()) return trial.Problem();
  if (speaks_tls) return "the server uses TLS: give --tls-ca=FILE with its CA, or --tls if this system trusts that CA";
  return SpeaksHttp1(address) ? AboutHttpPort(address) : "";
}

}  // namespace longshort::client
