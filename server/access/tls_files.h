// The files that TLS needs, as the options name them.
#pragma once

#include <string>

namespace longshort::server {

// PEM files; an empty path is none. Without a certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  // the server's, and behind it those between it and an authority that clients know
  std::string key;          // of the certificate
  std::string client_ca;    // authorities: each client must bring a certificate that one of them has signed
  std::string client_crl;   // revocation lists of all these authorities

  bool enabled() const { return !certificate.empty(); }
};

}  // namespace longshort::server
