// ExportSession and ImportSession over a real connection, with a scripted engine.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::session_transfer_test {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
using Parts = std::vector<v1::SessionPart>;

class SessionTransferTest : public ServingFixture {
 protected:
  SessionTransferTest() {
    auto scripted = std::make_unique<ScriptedEngine>();
    engine_ = scripted.get();
    engine_->archives["alice/talk"] = {
        .tokens = {1, 2, 3},
        .cache_layout = "fake",
        .cached = core::ParkedPages{.begin = 0, .position = 2, .contents = std::string(5 * kMiB / 2, 'k')}};
    Serve(RegistryOf(std::move(scripted)));
    environment_->session_transfers = {
        .key = std::string(32, 'k'), .budget = std::make_shared<TransferBudget>(16 * kMiB), .server = "here"};
    sessions_ = v1::Sessions::NewStub(NewChannel());
  }

  std::shared_ptr<grpc::Channel> NewChannel() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 10);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // so that the window of a client that does not read does not grow
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", endpoint_->address().port),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  // Exports a session of the client or of `owner`. Returns its parts and the status.
  std::pair<Parts, grpc::Status> Export(const std::string& client, const std::string& id,
                                        const std::optional<std::string>& owner = std::nullopt) {
    grpc::ClientContext context;
    context.AddMetadata("x-client-id", client);
    v1::ExportSessionRequest request;
    request.set_session_id(id);
    if (owner.has_value()) request.set_owner(*owner);
    const auto reader = sessions_->ExportSession(&context, request);
    Parts parts;
    v1::SessionPart part;
    while (reader->Read(&part)) parts.push_back(part);
    return {std::move(parts), reader->Finish()};
  }

  grpc::Status Import(const std::string& client, const std::string& id, const Parts& parts, bool keep_owner = false) {
    grpc::ClientContext context;
    context.AddMetadata("x-client-id", client);
    const auto writer = sessions_->ImportSession(&context, &imported_);
    v1::ImportSessionRequest request;
    request.mutable_beginning()->set_session_id(id);
    request.mutable_beginning()->set_keep_owner(keep_owner);
    bool open = writer->Write(request);
    for (const v1::SessionPart& part : parts) {
      *request.mutable_part() = part;
      open = open && writer->Write(request);
    }
    writer->WritesDone();
    return writer->Finish();
  }

  // The status of an import that must fail, import nothing, and release its budget.
  grpc::StatusCode Refused(const Parts& parts) {
    const grpc::Status status = Import("alice", "copy", parts);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(engine_->archives.count("alice/copy"), 0U);
    message_ = status.error_message();
    return status.error_code();
  }

  ScriptedEngine* engine_;
  std::unique_ptr<v1::Sessions::Stub> sessions_;
  v1::ImportSessionResponse imported_;
  std::string message_;
};

TEST_F(SessionTransferTest, ASessionIsExportedInChunksAndImportedAgain) {
  const auto [parts, status] = Export("alice", "talk");
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(parts.size(), 5U);  // a header, 1 MiB, 1 MiB, half a MiB and the description, a seal
  EXPECT_EQ(parts[0].header().fingerprint(), "f00d");
  EXPECT_EQ(parts[0].header().session_tokens(), 3);
  EXPECT_EQ(static_cast<int64_t>(parts[1].data().size()), kMiB);
  EXPECT_EQ(static_cast<int64_t>(parts[2].data().size()), kMiB);
  EXPECT_EQ(parts[0].header().data_bytes(), static_cast<int64_t>(2 * kMiB + parts[3].data().size()));
  ASSERT_TRUE(Import("alice", "copy", parts).ok());
  EXPECT_EQ(imported_.session_tokens(), 3);
  const core::SessionArchive &here = engine_->archives["alice/talk"], &there = engine_->archives["alice/copy"];
  EXPECT_EQ(there.tokens, here.tokens);
  EXPECT_EQ(there.cache_layout, "fake");
  EXPECT_EQ(there.cached->position, 2);
  EXPECT_TRUE(there.cached->contents == here.cached->contents);
  EXPECT_EQ(Import("alice", "copy", parts).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(SessionTransferTest, BelongsToItsClient) {
  const auto [parts, status] = Export("alice", "talk");
  EXPECT_EQ(Export("mallory", "talk").second.error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status stolen = Import("mallory", "talk", parts);
  EXPECT_EQ(stolen.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(stolen.error_message(), "the session belongs to another client");
}

TEST_F(SessionTransferTest, MayBeMovedForItsOwner) {
  const auto [parts, status] = Export("operator", "talk", "alice");
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(Import("operator", "copy", parts, /*keep_owner=*/true).ok());
  EXPECT_EQ(engine_->archives.count("alice/copy"), 1U);
  EXPECT_EQ(Import("operator", "copy", parts).error_code(), grpc::StatusCode::PERMISSION_DENIED) << "not the caller's";
  EXPECT_EQ(Export("operator", "talk", "bob").second.error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status no_owner = Export("operator", "talk", "/alice/").second;
  EXPECT_EQ(no_owner.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(no_owner.error_message(), HasSubstr("owner is \"/alice/\"; it must be the client's name for itself"));
}

TEST_F(SessionTransferTest, WithoutAKeyNothingMoves) {
  const Parts parts = Export("alice", "talk").first;
  environment_->session_transfers = {};
  const grpc::Status status = Export("alice", "talk").second;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--session-key-file"));
  EXPECT_EQ(Refused(parts), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(SessionTransferTest, AnotherKeyProvesNothing) {
  const Parts parts = Export("alice", "talk").first;
  environment_->session_transfers.key = std::string(32, 'x');
  EXPECT_EQ(Refused(parts), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(SessionTransferTest, AnotherModelsSessionIsRefused) {
  Parts parts = Export("alice", "talk").first;
  parts[0].mutable_header()->set_fingerprint("beef");
  EXPECT_EQ(Refused(parts), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(message_, "the session belongs to a model of fingerprint \"beef\"; this one's is \"f00d\"");
}

TEST_F(SessionTransferTest, CutOrChangedDataIsDataLoss) {
  const Parts whole = Export("alice", "talk").first;
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(Refused(Parts(whole.begin(), whole.begin() + length)), grpc::StatusCode::DATA_LOSS) << length;
    EXPECT_THAT(message_, HasSubstr("cut short"));
  }
  Parts parts = whole;
  (*parts[2].mutable_data())[1000] ^= 1;
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
  parts = whole;
  std::swap(parts[1], parts[2]);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
  parts = whole;
  parts.erase(parts.begin() + 2);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
  parts = whole;
  parts.insert(parts.begin() + 2, parts[2]);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
  parts = whole;
  parts[4].mutable_seal()->mutable_checksum()->resize(5);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
}

TEST_F(SessionTransferTest, MessagesOutOfOrderAreNamed) {
  const Parts whole = Export("alice", "talk").first;
  EXPECT_EQ(Refused(Parts(whole.begin() + 1, whole.end())), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(message_, "the session's header is missing");
  Parts parts = whole;
  parts.insert(parts.begin() + 1, parts[0]);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Import("alice", "two words", whole).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  grpc::ClientContext context;
  const auto writer = sessions_->ImportSession(&context, &imported_);
  v1::ImportSessionRequest request;
  *request.mutable_part() = whole[0];
  writer->Write(request);
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "kind is not beginning; it must be beginning in the first message");
}

TEST_F(SessionTransferTest, AnImportLargerThanAnySessionIsRejected) {
  Parts parts = Export("alice", "talk").first;
  parts[0].mutable_header()->set_data_bytes(int64_t{1} << 40);
  EXPECT_EQ(Refused(parts), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("header.data_bytes is 1099511627776; it must be in [1, "));
}

// Announced bytes that were not sent block no other client.
TEST_F(SessionTransferTest, TransfersShareABudgetByTheirReceivedBytes) {
  environment_->trusts_client_ids = true;
  // For each of two clients the most that an export may take, and the first reservation of an import.
  environment_->session_transfers.budget = std::make_shared<TransferBudget>(2 * (8 * kMiB + (64 << 10)));
  const Parts parts = Export("alice", "talk").first;
  grpc::ClientContext context;
  context.AddMetadata("x-client-id", "mallory");
  v1::ImportSessionResponse response;
  const auto first = sessions_->ImportSession(&context, &response);
  v1::ImportSessionRequest request;
  request.mutable_beginning()->set_session_id("first");
  ASSERT_TRUE(first->Write(request));
  *request.mutable_part() = parts[0];
  request.mutable_part()->mutable_header()->set_data_bytes(7 * kMiB);
  ASSERT_TRUE(first->Write(request));
  while (environment_->session_transfers.budget->held() == 0) std::this_thread::yield();
  EXPECT_TRUE(Export("alice", "talk").second.ok());
  EXPECT_TRUE(Import("alice", "copy", parts).ok());
  engine_->archives.erase("alice/copy");
  // The archive begins like a session's. The rest is verified only at the end.
  for (int sent = 0; sent < 6; ++sent) {
    request.mutable_part()->set_data(sent == 0 ? parts[1].data().substr(0, kMiB) : std::string(kMiB, 'x'));
    ASSERT_TRUE(first->Write(request));
  }
  while (environment_->session_transfers.budget->held() < 6 * kMiB) std::this_thread::yield();
  auto others = environment_->session_transfers.budget->Take("trudy", 8 * kMiB + (64 << 10));
  ASSERT_TRUE(others.ok());
  EXPECT_EQ(Refused(parts), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(message_, HasSubstr("sessions in transfer hold 14745600 bytes and this one"));
  EXPECT_EQ(Export("alice", "talk").second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  context.TryCancel();
  first->Finish();
  *others = TransferBudget::Share();
  while (environment_->session_transfers.budget->held() > 0) std::this_thread::yield();
  EXPECT_TRUE(Import("alice", "copy", parts).ok());
}

// A session takes its actual size from the budget, once that is known.
TEST_F(SessionTransferTest, ASessionsTokensCountToo) {
  engine_->largest_session.cache_bytes = kMiB;
  engine_->archives["alice/talk"] = {.tokens = std::vector<int32_t>(4 * kMiB, 1), .cache_layout = "fake", .cached = {}};
  grpc::ClientContext context;
  context.AddMetadata("x-client-id", "alice");
  v1::ExportSessionRequest request;
  request.set_session_id("talk");
  const auto reader = sessions_->ExportSession(&context, request);
  while (environment_->session_transfers.budget->held() <= kMiB) std::this_thread::yield();
  EXPECT_GE(environment_->session_transfers.budget->held(), 4 * kMiB);
  context.TryCancel();
  reader->Finish();
  while (environment_->session_transfers.budget->held() > 0) std::this_thread::yield();
}

TEST_F(SessionTransferTest, AClientThatStallsInTheMiddleLosesItsPlace) {
  const Parts parts = Export("alice", "talk").first;
  environment_->slow_reader_timeout = absl::Milliseconds(200);
  {
    grpc::ClientContext context;
    const auto writer = sessions_->ImportSession(&context, &imported_);
    v1::ImportSessionRequest request;
    request.mutable_beginning()->set_session_id("copy");
    writer->Write(request);
    *request.mutable_part() = parts[0];
    writer->Write(request);
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(status.error_message(), "the client sent less than 65536 bytes in 200ms (--slow-reader-timeout)");
  }
  {
    grpc::ClientContext context;
    context.AddMetadata("x-client-id", "alice");
    v1::ExportSessionRequest request;
    request.set_session_id("talk");
    const auto reader = sessions_->ExportSession(&context, request);
    // Reads nothing until the server has cancelled the call.
    while (environment_->session_transfers.budget->held() == 0) std::this_thread::yield();
    while (environment_->session_transfers.budget->held() > 0) std::this_thread::yield();
    v1::SessionPart part;
    while (reader->Read(&part)) continue;
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

// Messages alone are no progress: otherwise a client could hold the budget forever by sending tiny ones.
TEST_F(SessionTransferTest, AClientThatTricklesLosesItsPlaceToo) {
  const Parts parts = Export("alice", "talk").first;
  environment_->slow_reader_timeout = absl::Milliseconds(200);
  for (const size_t bytes : {0, 1}) {
    grpc::ClientContext context;
    const auto writer = sessions_->ImportSession(&context, &imported_);
    v1::ImportSessionRequest request;
    request.mutable_beginning()->set_session_id("copy");
    writer->Write(request);
    *request.mutable_part() = parts[0];
    bool open = writer->Write(request);
    for (int n = 0; n < 1000 && open; ++n) {
      request.mutable_part()->set_data(parts[1].data().substr(n, bytes));
      open = writer->Write(request);
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_FALSE(open) << "messages must not keep the call open";
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
}

// Checking this seal takes milliseconds, during which the call may end, and so it may before the engine has answered.
// The engine must not answer the call later (the address sanitizer would detect it).
TEST_F(SessionTransferTest, AClientMayCancelWhileTheSealIsChecked) {
  environment_->session_transfers.budget = std::make_shared<TransferBudget>(64 * kMiB);
  engine_->largest_session.tokens = 2 * kMiB;
  engine_->archives["alice/talk"] = {.tokens = std::vector<int32_t>(2 * kMiB, 1), .cache_layout = "fake", .cached = {}};
  const Parts parts = Export("alice", "talk").first;
  std::mutex mutex;
  std::vector<std::function<void()>> answers;  // of the engine
  engine_->notify_imported = [&](const std::function<void()>& notify) {
    const std::lock_guard lock(mutex);
    answers.push_back(notify);
  };
  const auto take_answers = [&] {
    const std::lock_guard lock(mutex);
    return std::exchange(answers, {});
  };
  for (int n = 0; n < 20; ++n) {
    grpc::ClientContext context;
    context.AddMetadata("x-client-id", "alice");
    const auto writer = sessions_->ImportSession(&context, &imported_);
    v1::ImportSessionRequest request;
    request.mutable_beginning()->set_session_id(absl::StrCat("copy", n));
    writer->Write(request);
    for (const v1::SessionPart& part : parts) {
      *request.mutable_part() = part;
      writer->Write(request);
    }
    std::vector<std::function<void()>> late;
    while (n % 2 == 1 && late.empty()) late = take_answers();
    context.TryCancel();
    writer->Finish();
    for (const auto& answer : late) answer();
    while (environment_->session_transfers.budget->held() > 0) {
      for (const auto& answer : take_answers()) answer();
    }
  }
}

TEST_F(SessionTransferTest, AStoppingServerEndsAnImport) {
  const Parts parts = Export("alice", "talk").first;
  grpc::ClientContext context;
  const auto writer = sessions_->ImportSession(&context, &imported_);
  v1::ImportSessionRequest request;
  request.mutable_beginning()->set_session_id("copy");
  writer->Write(request);
  *request.mutable_part() = parts[0];
  writer->Write(request);
  while (environment_->session_transfers.budget->held() == 0) std::this_thread::yield();
  gate_.Close();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace longshort::server::session_transfer_test
