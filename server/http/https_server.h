// The server of HTTP, with or without TLS.
#pragma once

#include <httplib.h>

#include <memory>

#include "server/tls/tls_watch.h"

namespace longshort {

// Every connection is shown the certificate that `tls`, which must outlive the server, has when it begins; clients are
// asked for none. Without `tls`: plain HTTP. The server is not valid if OpenSSL has no memory for it.
std::unique_ptr<httplib::Server> MakeHttpServer(const TlsWatch* tls);

}  // namespace longshort
