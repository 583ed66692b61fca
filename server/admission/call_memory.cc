#include "server/admission/call_memory.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/freed_memory.h"

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

}  // namespace

std::shared_ptr<ClientBudgets> MessageBudgets(int64_t bytes, std::shared_ptr<Budget> parent) {
  return std::make_shared<ClientBudgets>(
      PartOf(std::move(parent), bytes, "the calls and the messages that are being read"), bytes / 2,
      Budget::Names{.holders = "this client's messages that are being read", .unit = "bytes"});
}

std::shared_ptr<Budget> AnswerBudget(int64_t bytes, std::shared_ptr<Budget> parent) {
  return PartOf(std::move(parent), bytes, "the answers that clients have not read");
}

std::shared_ptr<Budget> ConnectionBudget(int64_t bytes, std::shared_ptr<Budget> parent) {
  return PartOf(std::move(parent), bytes, "the connections");
}

CallMemory::CallMemory(const Sizes& sizes, absl::Duration patience, MetricFamilies& families)
    : all_(PartOf(nullptr, sizes.all(), "all calls and connections")),
      messages_(MessageBudgets(sizes.messages, all_)),
      answer_bytes_(AnswerBudget(sizes.answers, all_)),
      transfers_(std::make_shared<TransferBudget>(sizes.transfers, all_)),
      connections_(ConnectionBudget(sizes.connections, all_)),
      answers_(std::make_shared<UnreadAnswers>(answer_bytes_, patience, thread_)) {
  AddPart(
      "messages", sizes.messages, [this] { return messages_->all()->held(); }, families);
  AddPart(
      "answers", sizes.answers, [this] { return answer_bytes_->held(); }, families);
  AddPart(
      "transfers", sizes.transfers, [this] { return transfers_->held(); }, families);
  AddPart(
      "connections", sizes.connections, [this] { return connections_->held(); }, families);
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

}  // namespace longshort::server
