// Certificates, private keys and revocation lists in PEM files, with errors for operators.
//
// Errors: INVALID_ARGUMENT that begins with "--OPTION=FILE ", unless stated otherwise.
// The results are immutable, hence thread-safe.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longshort {

struct PemFree {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, PemFree>;
using RevocationList = std::unique_ptr<X509_CRL, PemFree>;
using PrivateKey = std::unique_ptr<EVP_PKEY, PemFree>;

// A file, and the option that names it.
struct PemFile {
  std::string option;  // "--tls-key"
  std::string path;

  // An error about the file: "--tls-key=FILE " and `what`.
  absl::Status Wrong(std::string_view what) const;
};

// All certificates of the file, at least one.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const PemFile& file);
// All revocation lists of the file, at least one.
absl::StatusOr<std::vector<RevocationList>> ReadRevocationLists(const PemFile& file);
// The first private key. A file that all users may read, and a key with a passphrase, are errors.
absl::StatusOr<PrivateKey> ReadPrivateKey(const PemFile& file);
// All certificates of `pem`, possibly none.
std::vector<Certificate> ParseCertificates(std::string_view pem);

// Checks that `certificate`, which is in `file`, is valid at `now`.
absl::Status CheckValidity(const PemFile& file, const X509& certificate, absl::Time now);
// A certificate, the intermediate ones behind it, and its key.
struct PemPair {
  std::vector<Certificate> chain;
  PrivateKey key;
};
// Reads both files, and checks that the key belongs to the first certificate.
absl::StatusOr<PemPair> ReadPemPair(const PemFile& certificate, const PemFile& key);

std::string SubjectOf(const X509& certificate);  // "CN=server,O=Example"
std::string SerialOf(const X509& certificate);   // hexadecimal, as openssl x509 -serial prints it
absl::Time ExpiryOf(const X509& certificate);
absl::Time TimeOf(const ASN1_TIME* time);

std::string ToPem(const std::vector<Certificate>& certificates);
std::string ToPem(const EVP_PKEY& key);

// Returns the text of OpenSSL's last error on this thread, and clears it.
std::string TakeOpensslError();

}  // namespace longshort
