#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/access/access_table.h"

namespace longshort::server::client_certificate_test {

// The credentials of a certificate with this common name and these alternative names, such as "URI:spiffe://a/b".
Credentials Of(const std::string& common_name, const std::vector<std::string>& names) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  for (const auto& [field, value] : {std::pair{"O", std::string("Example, Inc.")}, std::pair{"CN", common_name}}) {
    EXPECT_EQ(X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                         reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0),
              1);
  }
  if (!names.empty()) {
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, absl::StrJoin(names, ",").c_str()),
        X509_EXTENSION_free);
    EXPECT_NE(extension, nullptr);
    X509_add_ext(certificate.get(), extension.get(), -1);
  }
  return CredentialsOf(*certificate);
}

TEST(ClientCertificate, HasItsSpiffeIdAndItsSubject) {
  const Credentials credentials = Of("batch", {"DNS:batch.example.org", "URI:spiffe://example.org/ns/ml/sa/batch"});
  EXPECT_EQ(credentials.spiffe_id, "spiffe://example.org/ns/ml/sa/batch");
  EXPECT_EQ(credentials.certificate_subject, "CN=batch,O=Example\\, Inc.");
}

TEST(ClientCertificate, WithoutSpiffeIdHasItsSubject) {
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {}, {"DNS:a"}, {"URI:https://example.org/spiffe"}, {"URI:https://a/b", "URI:https://c/d"}}) {
    const Credentials credentials = Of("batch", names);
    EXPECT_EQ(credentials.spiffe_id, "") << absl::StrJoin(names, " ");
    EXPECT_EQ(credentials.certificate_subject, "CN=batch,O=Example\\, Inc.");
  }
}

// Its authority did not mean to name a client by it: neither name counts.
TEST(ClientCertificate, WithAMalformedSpiffeIdOrAnotherUriBesideItHasNone) {
  const std::string long_domain(256, 'a'), long_path(2048, 'a');
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"URI:spiffe://example.org"},
                                             {"URI:spiffe://example.org/"},
                                             {"URI:spiffe:///path"},
                                             {"URI:spiffe:example.org/path"},
                                             {"URI:SPIFFE://example.org/path"},
                                             {absl::StrCat("URI:spiffe://", long_domain, "/path")},
                                             {absl::StrCat("URI:spiffe://a/", long_path)},
                                             {"URI:spiffe://a/b", "URI:spiffe://a/c"},
                                             {"URI:spiffe://a/b", "URI:https://a/b"},
                                             {"URI:https://a/b", "URI:spiffe://a/b"}}) {
    const Credentials credentials = Of("batch", names);
    EXPECT_EQ(credentials.spiffe_id, "") << names.front();
    EXPECT_EQ(credentials.certificate_subject, "") << names.front();
  }
}

}  // namespace longshort::server::client_certificate_test
