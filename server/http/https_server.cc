#include "server/http/https_server.h"

#include <openssl/ssl.h>

namespace longshort {
namespace {

// OpenSSL calls it when a client has said hello; 0 ends the connection.
int ShowCertificate(SSL* connection, void* watch) {
  return static_cast<const TlsWatch*>(watch)->current()->Use(*connection) ? 1 : 0;
}

}  // namespace

std::unique_ptr<httplib::Server> MakeHttpServer(const TlsWatch* tls) {
  if (tls == nullptr) return std::make_unique<httplib::Server>();
  return std::make_unique<httplib::SSLServer>([tls](SSL_CTX& context) {
    SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
    SSL_CTX_set_options(&context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_cert_cb(&context, ShowCertificate, const_cast<TlsWatch*>(tls));
    return true;
  });
}

}  // namespace longshort
