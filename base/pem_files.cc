#include "base/pem_files.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// Larger than any bundle of certificate authorities. A larger file is not one.
constexpr size_t kMaxBytes = size_t{4} << 20;

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFree>;

// `text` must outlive the result.
Bio ReaderOf(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string TextIn(const Bio& bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

absl::StatusOr<std::string> ReadText(const PemFile& file) {
  absl::StatusOr<std::string> text = ReadTextFile(file.path, kMaxBytes);
  if (!text.ok()) return file.Wrong(absl::StrCat("cannot be read: ", text.status().message()));
  return text;
}

// Reads objects of one kind until `read` returns none. Errors: a damaged PEM block, or no object.
template <typename Object, typename Read>
absl::StatusOr<std::vector<Object>> ReadAll(const PemFile& file, std::string_view kind, Read read) {
  LS_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  const Bio bio = ReaderOf(text);
  std::vector<Object> objects;
  ERR_clear_error();
  while (Object object{read(bio.get())}) objects.push_back(std::move(object));
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  const std::string why = TakeOpensslError();
  if (!at_end) return file.Wrong(absl::StrCat("contains a damaged PEM block: ", why));
  if (objects.empty()) {
    return file.Wrong(absl::StrCat("contains no ", std::string(kind),
                                   " in PEM format (-----BEGIN ...); openssl converts DER to PEM"));
  }
  return objects;
}

// OpenSSL's callback for a key with a passphrase. It provides none.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

}  // namespace

absl::Status PemFile::Wrong(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(option, "=", path, " ", std::string(what)));
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const PemFile& file) {
  return ReadAll<Certificate>(file, "certificate",
                              [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, nullptr, nullptr); });
}

absl::StatusOr<std::vector<RevocationList>> ReadRevocationLists(const PemFile& file) {
  return ReadAll<RevocationList>(file, "revocation list",
                                 [](BIO* bio) { return PEM_read_bio_X509_CRL(bio, nullptr, nullptr, nullptr); });
}

absl::StatusOr<PrivateKey> ReadPrivateKey(const PemFile& file) {
  LS_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(file.option, file.path, kMaxBytes));
  const Bio bio = ReaderOf(text);
  ERR_clear_error();
  bool has_passphrase = false;
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, &has_passphrase));
  const std::string why = TakeOpensslError();
  if (has_passphrase)
    return file.Wrong("is protected by a passphrase, which is not supported; remove it with openssl pkey");
  if (key == nullptr) return file.Wrong(absl::StrCat("contains no private key in PEM format: ", why));
  return key;
}

std::vector<Certificate> ParseCertificates(std::string_view pem) {
  const Bio bio = ReaderOf(pem);
  std::vector<Certificate> certificates;
  while (Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    certificates.push_back(std::move(certificate));
  }
  ERR_clear_error();
  return certificates;
}

absl::Status CheckValidity(const PemFile& file, const X509& certificate, absl::Time now) {
  const auto wrong = [&](std::string_view what, absl::Time when) {
    return file.Wrong(absl::StrCat("contains the certificate ", SubjectOf(certificate), ", which ", std::string(what),
                                   " ", absl::FormatTime(absl::RFC3339_sec, when, absl::UTCTimeZone())));
  };
  const absl::Time begin = TimeOf(X509_get0_notBefore(&certificate));
  if (now < begin) return wrong("is not valid before", begin);
  if (now > ExpiryOf(certificate)) return wrong("expired at", ExpiryOf(certificate));
  return absl::OkStatus();
}

absl::StatusOr<PemPair> ReadPemPair(const PemFile& certificate, const PemFile& key) {
  PemPair pair;
  LS_ASSIGN_OR_RETURN(pair.chain, ReadCertificates(certificate));
  LS_ASSIGN_OR_RETURN(pair.key, ReadPrivateKey(key));
  const X509& first = *pair.chain.front();
  const bool is_pair = X509_check_private_key(&first, pair.key.get()) == 1;
  ERR_clear_error();
  if (is_pair) return pair;
  return key.Wrong(absl::StrCat("is not the key of the certificate ", SubjectOf(first), ", the first one in ",
                                certificate.option, "=", certificate.path));
}

std::string SubjectOf(const X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  // RFC 2253's format, but in the order of the certificate.
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253 & ~XN_FLAG_DN_REV);
  return TextIn(bio);
}

std::string SerialOf(const X509& certificate) {
  const std::unique_ptr<BIGNUM, void (*)(BIGNUM*)> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr), BN_free);
  const std::unique_ptr<char, void (*)(char*)> text(number == nullptr ? nullptr : BN_bn2hex(number.get()),
                                                    [](char* hex) { OPENSSL_free(hex); });
  return text == nullptr ? "" : text.get();
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfiniteFuture();
  return absl::FromTimeT(timegm(&parts));
}

absl::Time ExpiryOf(const X509& certificate) { return TimeOf(X509_get0_notAfter(&certificate)); }

std::string ToPem(const std::vector<Certificate>& certificates) {
  const Bio bio(BIO_new(BIO_s_mem()));
  for (const Certificate& certificate : certificates) PEM_write_bio_X509(bio.get(), certificate.get());
  return TextIn(bio);
}

std::string ToPem(const EVP_PKEY& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
  return TextIn(bio);
}

std::string TakeOpensslError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

}  // namespace longshort
