// Where traces go: the collector's URL, and the PEM files with which the server speaks TLS to it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/pem_files.h"
#include "server/options/listening_sockets.h"

namespace longshort::server {

// A collector's URL, in parts: [http://|https://]host[:port][/path].
struct CollectorUrl {
  std::string scheme = {};  // "http", "https", or empty
  ListenAddress address = {};
  std::string path = {};  // begins with "/", or is empty
};

// A URL with a scheme needs no port: it is 80 or 443 then. Errors: INVALID_ARGUMENT that completes "NAME is 'TEXT'; ".
absl::StatusOr<CollectorUrl> ParseCollectorUrl(const std::string& text);

// The files, each with the variable that names it. An empty path: no such file.
struct CollectorTlsFiles {
  PemFile authorities = {};  // for the collector's certificate; without a file the system's
  PemFile certificate = {};  // the server's own, and its key: both or neither
  PemFile key = {};
};

// What the files contain; empty where there is no file.
struct CollectorPems {
  std::string authorities = {};
  std::string certificate = {};
  std::string key = {};

  bool operator==(const CollectorPems&) const = default;
};

// Errors: INVALID_ARGUMENT naming variable and file: one that cannot be read or has no certificate or key; a key of
// another certificate; only one of certificate and key.
absl::StatusOr<CollectorPems> ReadCollectorPems(const CollectorTlsFiles& files);

}  // namespace longshort::server
