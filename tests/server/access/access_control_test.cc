// Who is let in, and what becomes of the file while the server runs.
#include "server/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "tests/base/temporary_directory.h"

namespace longshort::server::access_control_test {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr RpcAccess kGenerate = {.scope = Scope::kInfer};
constexpr RpcAccess kLoadModel = {.scope = Scope::kManage};
constexpr RpcAccess kCloseSession = {.scope = Scope::kSessions};
constexpr RpcAccess kMetrics = {.scope = Scope::kObserve};
constexpr RpcAccess kHealthCheck = {.scope = Scope::kObserve, .health = true};
constexpr RpcAccess kHealthList = {.scope = Scope::kObserve};

std::string LineOf(const std::string& name, const std::string& token, const std::string& rest) {
  auto hash = Sha256::Create();
  EXPECT_TRUE(hash.ok() && hash->Update(token).ok());
  return absl::StrCat(name, " token-sha256=", absl::BytesToHexString(*hash->Finish()), " ", rest, "\n");
}

Credentials Bearer(const std::string& token) { return {.authorization = "Bearer " + token}; }

class AccessControlTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }

  // With a thread that never looks: the test does.
  void Open(const std::string& text, bool protect_health = false) {
    Write(text);
    auto opened =
        AccessControl::Open({.token_file = path_, .protect_health = protect_health, .poll_interval = absl::Hours(24)},
                            [this](const absl::Status& status) { reports_.push_back(status); });
    ASSERT_TRUE(opened.ok()) << opened.status();
    access_ = *std::move(opened);
  }

  // What is there is taken when it has been seen twice.
  void Look() {
    access_->PollFile();
    access_->PollFile();
  }

  absl::StatusOr<Caller> Admit(const Credentials& credentials, const RpcAccess& needed = kGenerate) {
    LS_ASSIGN_OR_RETURN(Caller caller, access_->Identify(credentials, needed, now_));
    LS_RETURN_IF_ERROR(AccessControl::Admit(caller, "ThisRpc", needed, now_));
    return caller;
  }
  std::string NameOf(const Credentials& credentials) {
    const auto caller = Admit(credentials);
    return caller.ok() ? caller->identity()->name() : std::string(caller.status().message());
  }
  StatusCode CodeOf(const Credentials& credentials, const RpcAccess& needed = kGenerate) {
    return Admit(credentials, needed).status().code();
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/tokens";
  const absl::Time now_ = MonotonicNow();
  std::vector<absl::Status> reports_;
  std::unique_ptr<AccessControl> access_;
};

TEST_F(AccessControlTest, ATokenIsItsIdentity) {
  Open(LineOf("alice", "a1", "scopes=infer") + LineOf("alice", "a2", "scopes=infer") +
       LineOf("bob", "b", "scopes=infer"));
  EXPECT_EQ(NameOf(Bearer("a1")), "alice");
  EXPECT_EQ(NameOf(Bearer("a2")), "alice");
  EXPECT_EQ(NameOf(Bearer("b")), "bob");
  EXPECT_EQ(NameOf({.authorization = "bEARER  b"}), "bob") << "HTTP's schemes have no case";
  EXPECT_EQ(Admit(Bearer("a1"))->identity(), Admit(Bearer("a2"))->identity()) << "one identity, one limit";
}

TEST_F(AccessControlTest, AGrantThatWasFoundIsNotLookedUpAgain) {
  Open(LineOf("alice", "a", "scopes=infer"));
  const auto found = Admit(Bearer("a"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(NameOf({.authorization = "Bearer unknown", .grant = found->grant()}), "alice");
}

TEST_F(AccessControlTest, APriorityAboveNormalIsTheLines) {
  Open(LineOf("alice", "usual", "scopes=infer") + LineOf("alice", "urgent", "scopes=infer priority=high"));
  const auto usual = Admit(Bearer("usual"));
  ASSERT_TRUE(usual.ok());
  EXPECT_TRUE(usual->CheckPriority(core::Priority::kLow).ok() && usual->CheckPriority(core::Priority::kNormal).ok());
  const absl::Status denied = usual->CheckPriority(core::Priority::kHigh);
  EXPECT_EQ(denied.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(denied.message(), AllOf(HasSubstr("alice"), HasSubstr("priority=high")));
  EXPECT_TRUE(Admit(Bearer("urgent"))->CheckPriority(core::Priority::kHigh).ok());
  EXPECT_TRUE(Caller().CheckPriority(core::Priority::kHigh).ok()) << "without a token file";
}

TEST_F(AccessControlTest, AnInvalidTokenIsAnsweredWithAdviceAndNotRepeated) {
  Open(LineOf("alice", "secret-a", "scopes=infer"));
  EXPECT_THAT(NameOf({}), AllOf(HasSubstr("authorization: Bearer TOKEN"), HasSubstr("longshort token new")));
  for (const char* wrong : {"secret-b", "secret-", "secret-aa", "Secret-a"}) {
    EXPECT_EQ(CodeOf(Bearer(wrong)), StatusCode::kUnauthenticated) << wrong;
    EXPECT_THAT(NameOf(Bearer(wrong)), AllOf(HasSubstr("unknown to this server"), Not(HasSubstr("ecret-"))));
  }
  for (const std::string& malformed :
       {std::string(), std::string("secret-a"), std::string("Basic secret-a"), std::string("Bearer"),
        std::string("Bearer "), std::string("Bearer secret-a,Bearer secret-a"), std::string("Bearer secret-a secret-a"),
        "Bearer " + std::string(513, 'x')}) {
    EXPECT_EQ(CodeOf({.authorization = malformed}), StatusCode::kUnauthenticated) << malformed;
    EXPECT_THAT(NameOf({.authorization = malformed}), AllOf(HasSubstr("Bearer TOKEN"), Not(HasSubstr("ecret-"))));
  }
}

TEST_F(AccessControlTest, AnExpiredTokenIsSaidToBe) {
  const auto at = [](absl::Time time) {
    return "scopes=infer expires=" + absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
  };
  const absl::Time wall = ToWallClock(now_);
  Open(LineOf("old", "past", at(wall - absl::Milliseconds(1))) + LineOf("old", "future", at(wall + absl::Minutes(1))));
  EXPECT_EQ(CodeOf(Bearer("past")), StatusCode::kUnauthenticated);
  EXPECT_THAT(NameOf(Bearer("past")), HasSubstr("the token of old expired at 20"));
  EXPECT_EQ(NameOf(Bearer("future")), "old");
  EXPECT_EQ(
      access_->Identify(Bearer("future"), kGenerate, now_ + absl::Minutes(1) + absl::Milliseconds(1)).status().code(),
      StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ACertificateIsItsSpiffeIdOrElseItsSubject) {
  Open("web spiffe-id=spiffe://a/web scopes=infer\nops certificate-subject=\"CN=ops,O=Example Inc\" scopes=infer\n" +
       LineOf("alice", "a", "scopes=infer"));
  EXPECT_TRUE(access_->uses_certificates());
  EXPECT_EQ(NameOf({.spiffe_id = "spiffe://a/web"}), "web");
  EXPECT_EQ(NameOf({.certificate_subject = "CN=ops,O=Example Inc"}), "ops");
  EXPECT_EQ(NameOf({.spiffe_id = "spiffe://a/web", .certificate_subject = "CN=ops,O=Example Inc"}), "web");
  // The subject of one that has a SPIFFE id says nothing.
  EXPECT_EQ(CodeOf({.spiffe_id = "spiffe://a/b", .certificate_subject = "CN=ops,O=Example Inc"}),
            StatusCode::kUnauthenticated);
  EXPECT_THAT(NameOf({.certificate_subject = "CN=ops"}), HasSubstr("subject \"CN=ops\" is in no line"));
  // A proxy forwards its client's token; a wrong one is not made good by the proxy's certificate.
  EXPECT_EQ(NameOf({.authorization = "Bearer a", .spiffe_id = "spiffe://a/web"}), "alice");
  EXPECT_EQ(CodeOf({.authorization = "Bearer x", .spiffe_id = "spiffe://a/web"}), StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ScopesCoverTheirCalls) {
  Open(LineOf("i", "infer", "scopes=infer") + LineOf("m", "manage", "scopes=manage") +
       LineOf("o", "observe", "scopes=observe"));
  EXPECT_FALSE(access_->uses_certificates());
  EXPECT_EQ(CodeOf(Bearer("infer"), kLoadModel), StatusCode::kPermissionDenied);
  EXPECT_THAT(Admit(Bearer("infer"), kLoadModel).status().message(), HasSubstr("ThisRpc needs the scope manage"));
  EXPECT_EQ(CodeOf(Bearer("manage"), kLoadModel), StatusCode::kOk);
  EXPECT_EQ(CodeOf(Bearer("manage"), kGenerate), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(Bearer("infer"), kCloseSession), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(Bearer("observe"), kMetrics), StatusCode::kOk);
  EXPECT_EQ(CodeOf({}, kMetrics), StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, HealthIsOpenUnlessItIsProtected) {
  const std::string file = LineOf("i", "infer", "scopes=infer") + LineOf("o", "observe", "scopes=observe");
  Open(file);
  EXPECT_EQ(CodeOf({}, kHealthCheck), StatusCode::kOk);
  EXPECT_EQ(CodeOf(Bearer("wrong"), kHealthCheck), StatusCode::kOk);
  EXPECT_EQ(CodeOf({}, kHealthList), StatusCode::kUnauthenticated) << "which names the models";
  Open(file, true);
  EXPECT_EQ(CodeOf({}, kHealthCheck), StatusCode::kUnauthenticated);
  EXPECT_EQ(CodeOf(Bearer("infer"), kHealthCheck), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(Bearer("observe"), kHealthCheck), StatusCode::kOk);
}

TEST_F(AccessControlTest, LimitsAreTheIdentitysAndObservingTakesNothing) {
  const std::string rest = "scopes=infer,observe calls-per-second=2";
  Open(LineOf("alice", "a1", rest) + LineOf("alice", "a2", rest) + LineOf("bob", "b", "scopes=infer"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(CodeOf(Bearer("a1"), kMetrics), StatusCode::kOk);
  EXPECT_EQ(CodeOf(Bearer("a1")), StatusCode::kOk);
  EXPECT_EQ(CodeOf(Bearer("a2")), StatusCode::kOk);
  EXPECT_EQ(CodeOf(Bearer("a1"), kLoadModel), StatusCode::kPermissionDenied) << "which takes nothing";
  const absl::Status refused = Admit(Bearer("a1")).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(core::GetRefusal(refused)->retry_after, absl::Milliseconds(500));
  EXPECT_EQ(CodeOf(Bearer("b")), StatusCode::kOk);
  // Changing the file forgives nothing.
  Write(LineOf("alice", "a3", rest));
  Look();
  EXPECT_EQ(CodeOf(Bearer("a3")), StatusCode::kResourceExhausted);
}

TEST_F(AccessControlTest, AChangedFileHoldsAndABrokenOneChangesNothing) {
  Open(LineOf("alice", "a", "scopes=infer"));
  const auto under_way = Admit(Bearer("a"));
  Write(LineOf("bob", "b", "scopes=infer"));
  Look();
  EXPECT_EQ(NameOf(Bearer("b")), "bob");
  EXPECT_EQ(CodeOf(Bearer("a")), StatusCode::kUnauthenticated);
  EXPECT_EQ(under_way->identity()->name(), "alice") << "an admitted caller keeps its identity";
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_TRUE(reports_[0].ok());

  Write("bob scopes=infer\n");
  for (int i = 0; i < 2; ++i) Look();
  EXPECT_EQ(NameOf(Bearer("b")), "bob");
  ASSERT_EQ(reports_.size(), 2U) << "once, not every second";
  EXPECT_THAT(reports_[1].message(), AllOf(HasSubstr(path_), HasSubstr("line 1")));

  std::filesystem::remove(path_);
  for (int i = 0; i < 2; ++i) Look();
  EXPECT_EQ(NameOf(Bearer("b")), "bob");
  ASSERT_EQ(reports_.size(), 3U);

  Write(LineOf("bob", "b", "scopes=infer"));
  Look();
  ASSERT_EQ(reports_.size(), 4U);
  EXPECT_TRUE(reports_[3].ok()) << "a repaired file is reported, too";
}

TEST_F(AccessControlTest, AFileThatIsBeingWrittenIsNotTaken) {
  const std::string alice = LineOf("alice", "a", "scopes=infer");
  Open(alice);
  const std::string bob = LineOf("bob", "b", "scopes=infer models=small");
  Write(alice + bob.substr(0, bob.find(" models")));
  access_->PollFile();
  EXPECT_EQ(CodeOf(Bearer("b")), StatusCode::kUnauthenticated) << "it would have all models";
  Write(alice + bob);
  access_->PollFile();
  EXPECT_EQ(CodeOf(Bearer("b")), StatusCode::kUnauthenticated);
  access_->PollFile();
  ASSERT_EQ(NameOf(Bearer("b")), "bob");
  EXPECT_FALSE(Admit(Bearer("b"))->MayUse("large"));
  EXPECT_EQ(reports_.size(), 1U);
}

TEST_F(AccessControlTest, TheThreadLooksByItself) {
  Write(LineOf("alice", "a", "scopes=infer"));
  auto opened = AccessControl::Open({.token_file = path_, .poll_interval = absl::Milliseconds(1)},
                                    [](const absl::Status& /*status*/) {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  Write(LineOf("bob", "b", "scopes=infer"));
  while (!(*opened)->Identify(Bearer("b"), kGenerate, MonotonicNow()).ok()) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(AccessControlTest, MetricsHaveSoManyLabelsAtMost) {
  std::string file;
  constexpr size_t kMore = AccessControl::kMaxMetricLabels + 20;
  for (size_t i = 0; i < kMore; ++i) {
    file += LineOf(absl::StrCat("i", i), absl::StrCat("t", i), "scopes=infer");
  }
  Open(file);
  std::set<std::string> labels;
  for (size_t i = 0; i < kMore; ++i) labels.insert(Admit(Bearer(absl::StrCat("t", i)))->identity()->metric_label());
  EXPECT_EQ(labels.size(), AccessControl::kMaxMetricLabels + 1);
  EXPECT_EQ(labels.count(AccessControl::kOtherIdentities), 1U);
}

TEST_F(AccessControlTest, AFileThatIsWrongAtTheStartIsAnError) {
  Write("alice\n");
  EXPECT_EQ(AccessControl::Open({.token_file = path_}, nullptr).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace longshort::server::access_control_test
