#include "server/access/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/temporary_directory.h"

namespace longshort::server::token_file_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kDigest(64, 'a');
const std::string kAlice = "alice token-sha256=" + kDigest;

absl::StatusOr<std::vector<AccessEntry>> Parse(const std::string& text) { return ParseTokenFile(text, "f"); }

TEST(TokenFile, ALineSaysWhoMayDoWhat) {
  const auto entries = Parse("# the batch jobs\n\n  " + kAlice +
                             "\tmodels=enwiki,vil-* scopes=infer,manage priority=high calls-per-second=2.5 "
                             "tokens-per-second=1e4 expires=2027-01-31T12:00:00Z \r\n");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 1U);
  const AccessEntry& entry = entries->front();
  EXPECT_EQ(entry.name, "alice");
  EXPECT_EQ(entry.kind, CredentialKind::kToken);
  EXPECT_EQ(entry.credential, std::string(32, '\xAA'));
  EXPECT_TRUE(entry.scopes.Has(Scope::kInfer) && entry.scopes.Has(Scope::kManage));
  EXPECT_FALSE(entry.scopes.Has(Scope::kSessions) || entry.scopes.Has(Scope::kObserve));
  EXPECT_TRUE(entry.models.Allow("enwiki") && entry.models.Allow("vil-tiny") && entry.models.Allow("vil-"));
  EXPECT_FALSE(entry.models.Allow("enwiki2") || entry.models.Allow("vil") || entry.models.Allow(""));
  EXPECT_EQ(entry.max_priority, core::Priority::kHigh);
  EXPECT_EQ(entry.limits.calls_per_second, 2.5);
  EXPECT_EQ(entry.limits.tokens_per_second, 10'000);
  EXPECT_EQ(entry.expires, absl::FromUnixSeconds(1'801'396'800));
}

TEST(TokenFile, WhatIsAbsentIsNoLimit) {
  const auto entries = Parse(kAlice + " scopes=infer");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->front().models.AllowAll());
  EXPECT_EQ(entries->front().max_priority, core::Priority::kNormal);
  EXPECT_EQ(entries->front().limits, IdentityLimits());
  EXPECT_EQ(entries->front().expires, absl::InfiniteFuture());
}

TEST(TokenFile, ADayIsItsBeginning) {
  const auto entries = Parse(kAlice + " scopes=infer expires=2027-01-31");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->front().expires, absl::FromUnixSeconds(1'801'353'600));
}

TEST(TokenFile, CertificatesAreNamedByTheirSpiffeIdOrSubject) {
  const auto entries = Parse(R"(web spiffe-id=spiffe://example.org/web scopes=infer
ops certificate-subject="CN=a \"b\",O=Example Inc" scopes=manage)");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ((*entries)[0].kind, CredentialKind::kSpiffeId);
  EXPECT_EQ((*entries)[0].credential, "spiffe://example.org/web");
  EXPECT_EQ((*entries)[1].kind, CredentialKind::kCertificateSubject);
  EXPECT_EQ((*entries)[1].credential, R"(CN=a \"b\",O=Example Inc)");
}

TEST(TokenFile, SeveralLinesMayBeOneIdentityOfOneLimit) {
  const std::string other = "alice token-sha256=" + std::string(64, 'b');
  EXPECT_TRUE(Parse(kAlice + " scopes=infer\n" + other + " scopes=manage").ok());
  const auto status = Parse(kAlice + " scopes=infer\n" + other + " scopes=infer calls-per-second=1").status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("line 2"), HasSubstr("limits of alice"), HasSubstr("line 1")));
}

TEST(TokenFile, ErrorsNameFileLineFieldAndValue) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"a/b token-sha256=" + kDigest + " scopes=infer", {"identity's name is \"a/b\"", "1 to 128"}},
      {kAlice, {"scopes is missing"}},
      {kAlice + " scopes=infer,root", {"scopes is \"infer,root\"", "manage"}},
      {"alice scopes=infer", {"number of credentials is 0"}},
      {kAlice + " spiffe-id=spiffe://a scopes=infer", {"number of credentials is 2"}},
      {kAlice + " scopes=infer scopes=infer", {"scopes is given twice"}},
      {kAlice + " scopes=infer rate=3", {"no field \"rate\"", "calls-per-second"}},
      {kAlice + " scopes=infer models=a*b", {"models is \"a*b\"", "except at its end"}},
      {kAlice + " scopes=infer models=a,,b", {"models is \"a,,b\""}},
      {kAlice + " scopes=infer priority=low", {"priority is \"low\"", "high or normal"}},
      {kAlice + " scopes=infer calls-per-second=0", {"calls-per-second is \"0\"", "[0.001, 1e9]"}},
      {kAlice + " scopes=infer calls-per-second=nan", {"calls-per-second is \"nan\""}},
      {kAlice + " scopes=infer tokens-per-second=-1", {"tokens-per-second is \"-1\""}},
      {kAlice + " scopes=infer expires=infinite-future", {"expires is \"infinite-future\"", "2027-01-31"}},
      {kAlice + " scopes=infer expires=2027-13-01", {"expires is"}},
      {kAlice + " scopes=infer expires=2027-01-31x", {"expires is"}},
      {"alice spiffe-id=web scopes=infer", {"spiffe-id is \"web\"", "spiffe://"}},
      {"alice certificate-subject=\"CN=a scopes=infer", {"a quote is not closed"}},
      {"alice certificate-subject=\"CN=a\"b scopes=infer", {"a closing quote"}},
      {"alice \"certificate-subject\"=a scopes=infer", {"an opening quote"}},
      {"alice certificate-subject=\x01 scopes=infer", {"not printable"}},
  };
  for (const auto& [line, parts] : wrong) {
    const absl::Status status = Parse("# first\n" + line + "\n").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(status.message(), HasSubstr("--token-file=f, line 2: ")) << line;
    for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

TEST(TokenFile, WhatCouldBeATokenIsNotShown) {
  const std::string token = "ls_0123456789abcdef";
  for (const std::string& line : {"alice token-sha256=" + token + " scopes=infer", "alice " + token}) {
    const absl::Status status = Parse(line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), Not(HasSubstr("0123456789")));
  }
}

TEST(TokenFile, ACredentialIsThereOnce) {
  const auto status =
      Parse(kAlice + " scopes=infer\nbob token-sha256=" + std::string(64, 'A') + " scopes=infer").status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("line 2"), HasSubstr("also in line 1")));
}

TEST(TokenFile, AFileWithoutIdentitiesIsHalfWritten) {
  for (const char* text : {"", "\n\n", "# none\n"}) {
    EXPECT_THAT(Parse(text).status().message(), HasSubstr("has no entries")) << text;
  }
}

TEST(TokenFile, IsForTheEyesOfOwnerAndGroup) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/tokens";
  EXPECT_THAT(ReadTokenFile(path).status().message(), AllOf(HasSubstr(path), HasSubstr("cannot be read")));
  std::ofstream(path) << "text";
  using std::filesystem::perms;
  for (const perms bit : {perms::others_read, perms::others_write, perms::others_exec}) {
    std::filesystem::permissions(path, perms::owner_all | bit);
    EXPECT_THAT(ReadTokenFile(path).status().message(), HasSubstr("chmod o="));
  }
  std::filesystem::permissions(path, perms::owner_read | perms::group_read);
  const auto text = ReadTokenFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "text");
  EXPECT_FALSE(ReadTokenFile(folder.path()).ok());
}

}  // namespace longshort::server::token_file_test
