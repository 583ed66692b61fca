// Paths of the TLS files, from the options.
#pragma once

#include <string>

namespace longshort::server {

// PEM files; an empty path means no file. Without a certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  // the server's, followed by the intermediate ones
  std::string key;          // the certificate's private key
  std::string client_ca;    // authorities, one of which must have signed each client's certificate
  std::string client_crl;   // revocation lists of all these authorities

  bool enabled() const { return !certificate.empty(); }
};

}  // namespace longshort::server
