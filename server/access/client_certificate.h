// The credentials in a client's certificate, as gRPC reports them for its own connections.
#pragma once

#include <openssl/x509.h>

#include "server/access/access_table.h"

namespace longshort::server {

// Of a verified certificate: its SPIFFE id, if it has one, and its subject (RFC 2253). Neither is set if its SPIFFE id
// is malformed or accompanied by another URI.
Credentials CredentialsOf(const X509& certificate);

}  // namespace longshort::server
