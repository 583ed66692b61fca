// What HTTP's connections have of TLS.
#pragma once

#include <memory>

#include "server/access/tls_watch.h"

// OpenSSL's.
struct ssl_ctx_st;

namespace longshort {

struct FreeTlsContext {
  void operator()(ssl_ctx_st* context) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTlsContext>;

// Every connection is shown the certificate that `tls`, which must outlive the context, has when it begins; clients are
// asked for none. Null if OpenSSL has no memory for it.
TlsContext MakeTlsContext(const TlsWatch& tls);

}  // namespace longshort
