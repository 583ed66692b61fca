#include "server/call/call_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/freed_memory.h"
#include "core/requests/job.h"
#include "core/schedule/refusal.h"
#include "server/monitoring/tracer.h"

namespace longshort::server {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);
// Freed memory is returned once so much of it was held and less than half of the peak is. After that, the
// models' next batches must get memory from the system again, so memory is not returned often.
constexpr int64_t kMuch = int64_t{16} << 20;
constexpr absl::Duration kReturnInterval = absl::Seconds(3);

std::shared_ptr<Budget> PartOf(std::shared_ptr<Budget> parent, int64_t bytes, std::string holders) {
  return std::make_shared<Budget>(bytes, Budget::Names{.holders = std::move(holders), .unit = "bytes"},
                                  std::move(parent));
}

// The transfer time of a session of 100 MiB at 100 MB/s.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Status Refused(absl::Status status) {
  core::SetRefusal(status, {.retry_after = kRetryAfter, .queue_depth = 0});
  return status;
}

}  // namespace

std::shared_ptr<ClientBudgets> MessageBudgets(int64_t bytes, std::shared_ptr<Budget> parent) {
  return std::make_shared<ClientBudgets>(
      PartOf(std::move(parent), bytes, "the calls and the messages that are being read"), bytes / 2,
      Budget::Names{.holders = "this client's messages that are being read", .unit = "bytes"}, /*leaves_room=*/true);
}

std::shared_ptr<Budget> AnswerBudget(int64_t bytes, std::shared_ptr<Budget> parent) {
  return PartOf(std::move(parent), bytes, "the answers that clients have not read");
}

std::shared_ptr<Budget> ConnectionBudget(int64_t bytes, std::shared_ptr<Budget> parent) {
  return PartOf(std::move(parent), bytes, "the connections");
}

CallMemory::CallMemory(const RequestMemory& sizes, absl::Duration patience, MetricFamilies& families)
    : all_(PartOf(nullptr, sizes.all(), "all requests and connections")),
      messages_(MessageBudgets(sizes.messages, all_)),
      probes_(MessageBudgets(sizes.probes, all_)),
      answer_bytes_(AnswerBudget(sizes.answers, all_)),
      transfers_(std::make_shared<TransferBudget>(sizes.transfers, all_)),
      connections_(ConnectionBudget(sizes.connections, all_)),
      engines_(EngineBudgetsOf(sizes, all_)),
      log_(PartOf(all_, sizes.log, "the lines of the log")),
      traces_(TraceBudget(sizes.traces, all_)),
      answers_(std::make_shared<UnreadAnswers>(answer_bytes_, messages_->all(), patience, thread_)) {
  const auto held_by = [](const std::shared_ptr<Budget>& budget, int64_t unit_bytes = 1) {
    return [budget, unit_bytes] { return budget->held() * unit_bytes; };
  };
  AddPart("messages", sizes.messages, held_by(messages_->all()), families);
  AddPart("probes", sizes.probes, held_by(probes_->all()), families);
  AddPart("answers", sizes.answers, held_by(answer_bytes_), families);
  AddPart(
      "transfers", sizes.transfers, [this] { return transfers_->held(); }, families);
  AddPart("connections", sizes.connections, held_by(connections_), families);
  AddPart("prompts", sizes.prompts, held_by(engines_.prompts->all(), core::TokenStream::kTokenBytes), families);
  AddPart("sessions", sizes.sessions, held_by(engines_.sessions->all(), core::TokenStream::kTokenBytes), families);
  AddPart("items", sizes.items, held_by(engines_.items->all()), families);
  AddPart("log", sizes.log, held_by(log_), families);
  AddPart("traces", sizes.traces, held_by(traces_), families);
}

void CallMemory::AddPart(const char* name, int64_t bytes, std::function<int64_t()> held, MetricFamilies& families) {
  families.memory_limits.Add({{"part", name}}).Set(static_cast<double>(bytes));
  parts_.push_back({.held = std::move(held), .gauge = families.memory_bytes.Add({{"part", name}})});
}

absl::Status CallMemory::Start() {
  return thread_.Start("the thread that keeps the account of memory", {.interval = kTick, .run = [this] { Tick(); }});
}

void CallMemory::Tick() {
  const absl::Time now = MonotonicNow();
  answers_->EndImpatient(now);
  for (const Part& part : parts_) part.gauge.Set(static_cast<double>(part.held()));
  const int64_t held = all_->held();
  peak_ = std::max(peak_, all_->TakePeak());
  if (peak_ - held < kMuch || held > peak_ / 2 || now < return_after_) return;
  ReturnFreedMemory();
  peak_ = held;
  return_after_ = now + kReturnInterval;
}

absl::Status TransferBudget::Share::Grow(int64_t bytes) {
  absl::Status status = bytes_.Grow(bytes);
  return status.ok() ? status : Refused(std::move(status));
}

TransferBudget::TransferBudget(int64_t bytes, std::shared_ptr<Budget> parent)
    : clients_(std::make_shared<Budget>(bytes, Budget::Names{.holders = "sessions in transfer", .unit = "bytes"},
                                        std::move(parent)),
               bytes / 2, {.holders = "sessions of this client in transfer", .unit = "bytes"}) {}

absl::StatusOr<TransferBudget::Share> TransferBudget::Take(const std::string& client, int64_t bytes, int64_t more) {
  absl::StatusOr<Budget::Share> share = Budget::Take(clients_.Of(client), bytes, more);
  if (!share.ok()) return Refused(share.status());
  return Share(*std::move(share));
}

}  // namespace longshort::server
