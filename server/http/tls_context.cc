#include "server/http/tls_context.h"

#include <openssl/ssl.h>

namespace longshort {
namespace {

// OpenSSL calls it when a client has said hello; 0 ends the connection.
int ShowCertificate(SSL* connection, void* watch) {
  return static_cast<const TlsWatch*>(watch)->current()->Use(*connection) ? 1 : 0;
}

}  // namespace

void FreeTlsContext::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

TlsContext MakeTlsContext(const TlsWatch& tls) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_cert_cb(context.get(), ShowCertificate, const_cast<TlsWatch*>(&tls));
  return context;
}

}  // namespace longshort
