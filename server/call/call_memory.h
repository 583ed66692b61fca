// The memory of requests, as one tree of budgets:
//
//   requests ── messages      calls, and their messages from the first byte that arrives until they are read
//            ├─ probes        calls of health, which are served while all else is full
//            ├─ answers       from before they are encoded until their clients have taken them
//            ├─ transfers     sessions that move between servers
//            ├─ connections   their buffers
//            ├─ prompts       tokens and options of requests in engines
//            ├─ sessions      their tokens
//            ├─ items         that wait for classifiers
//            ├─ log           lines that are not written
//            └─ traces        that are not exported
//
// A thread ends calls whose clients do not read, returns memory that a flood has left to the system, and keeps the
// metrics of the parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/thread.h"
#include "server/call/unread_answers.h"
#include "server/model_control/load_models.h"
#include "server/monitoring/metric_families.h"
#include "server/options/server_options.h"

namespace longshort::server {

// Limits the bytes of sessions that are being exported or imported, and so the memory for transfers. A client may hold
// half of the budget.
//
// Thread-safe.
class TransferBudget final {
 public:
  // A part of the budget, released by the destructor. Thread: one at a time.
  class Share final {
   public:
    Share() = default;
    explicit Share(Budget::Share bytes) : bytes_(std::move(bytes)) {}

    // As in Budget::Share. Errors: RESOURCE_EXHAUSTED with a Refusal; the share is then unchanged.
    absl::Status Grow(int64_t bytes);
    void SetAmount(int64_t bytes) { bytes_.SetAmount(bytes); }
    int64_t bytes() const { return bytes_.amount(); }

   private:
    Budget::Share bytes_;
  };

  // `parent`: the budget above; null for none.
  explicit TransferBudget(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);

  // Takes `bytes` for this client, if there is also room for `more` bytes that will follow. Errors: RESOURCE_EXHAUSTED
  // with a Refusal (core/schedule/refusal.h).
  absl::StatusOr<Share> Take(const std::string& client, int64_t bytes, int64_t more = 0);

  int64_t held() const { return clients_.all()->held(); }

 private:
  ClientBudgets clients_;
};

// Configuration and state for moving sessions between servers.
struct SessionTransfers {
  // From --session-key-file. Empty: this server neither exports nor imports sessions.
  std::string key;
  std::shared_ptr<TransferBudget> budget;
  // A unique id of this run of the server.
  std::string server;
};

// Errors: FAILED_PRECONDITION with the remedy if the server has no key.
inline absl::Status CheckSessionsMove(const SessionTransfers& transfers) {
  if (!transfers.key.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError("sessions cannot be moved: start both servers with the same --session-key-file");
}

// A client may hold half of the bytes, and no more than it leaves to others. `parent`: null for a root; here and below.
std::shared_ptr<ClientBudgets> MessageBudgets(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);
std::shared_ptr<Budget> AnswerBudget(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);
std::shared_ptr<Budget> ConnectionBudget(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);

class CallMemory final {
 public:
  // `patience`: how long a client may leave an answer unread. `families` must outlive this.
  CallMemory(const RequestMemory& sizes, absl::Duration patience, MetricFamilies& families);
  ~CallMemory() { thread_.Stop(); }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
  // Errors: those of Thread::Start.
  absl::Status Start();

  const std::shared_ptr<ClientBudgets>& messages() const { return messages_; }
  const std::shared_ptr<ClientBudgets>& probes() const { return probes_; }
  const std::shared_ptr<UnreadAnswers>& answers() const { return answers_; }
  int64_t answer_bytes() const { return answer_bytes_->held(); }
  const std::shared_ptr<TransferBudget>& transfers() const { return transfers_; }
  const std::shared_ptr<Budget>& connections() const { return connections_; }
  const EngineBudgets& engines() const { return engines_; }
  const std::shared_ptr<Budget>& log() const { return log_; }
  const std::shared_ptr<Budget>& traces() const { return traces_; }

 private:
  struct Part {
    std::function<int64_t()> held;
    prometheus::Gauge& gauge;
  };

  void Tick();
  void AddPart(const char* name, int64_t bytes, std::function<int64_t()> held, MetricFamilies& families);

  const std::shared_ptr<Budget> all_;
  const std::shared_ptr<ClientBudgets> messages_;
  const std::shared_ptr<ClientBudgets> probes_;
  const std::shared_ptr<Budget> answer_bytes_;
  const std::shared_ptr<TransferBudget> transfers_;
  const std::shared_ptr<Budget> connections_;
  const EngineBudgets engines_;
  const std::shared_ptr<Budget> log_;
  const std::shared_ptr<Budget> traces_;
  std::vector<Part> parts_;
  int64_t peak_ = 0;  // since memory was returned
  absl::Time return_after_ = absl::InfinitePast();
  TaskThread thread_;
  const std::shared_ptr<UnreadAnswers> answers_;
};

}  // namespace longshort::server
