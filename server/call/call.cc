#include "server/call/call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "core/requests/request_context.h"
#include "core/schedule/refusal.h"

namespace longshort::server {
namespace {

// A message up to this size is read at once, unless its client holds more memory than so many calls. Reading takes up
// to 0.2 ms if it is a list of many short texts.
constexpr int64_t kSmallBytes = 256, kFewCalls = 64;
// The pause after each message of a client that holds more, while others call, too. gRPC takes about 50 us of one
// thread for each call, in the order of arrival, so without pauses the calls of others would wait behind thousands.
constexpr absl::Duration kPause = absl::Microseconds(200);
// What a call takes in memory, with gRPC's part and two and a half times its metadata.
constexpr int64_t kBytesOfCall = int64_t{24} << 10;
int64_t BytesOf(const CallOrigin& origin) { return kBytesOfCall + 5 * origin.metadata_bytes / 2; }
// A compressed message may be this much larger, for the prediction of its work.
constexpr int64_t kUsualRatio = 20;
// A client's message goes first if its arrival plus this many times its work is the earliest.
constexpr int64_t kPatienceForWork = 100;

}  // namespace

Call::Call(const CallEnvironment& environment, const Operation& operation, CallOrigin origin)
    : operation_(operation),
      bytes_(BytesOf(origin)),
      record_(environment, operation.names, std::move(origin),
              [this] {
                return UnreadAnswers::Owner{.client = record_.engine_context().client,
                                            .end = [weak = weak_from_this()](const absl::Status& why) {
                                              if (const std::shared_ptr<Call> call = weak.lock()) call->EndUnread(why);
                                            }};
              }),
      work_(operation.work(*this)),
      idle_(environment.gate),
      write_timer_(environment.slow_reader_timeout) {
  if (has_one_message()) ended_ = absl::OkStatus();
}

Call::~Call() {
  if (gate_watch_ != 0) environment().gate.RemoveWatch(gate_watch_);
}

bool Call::Open() {
  self_ = shared_from_this();
  WatchGate();
  absl::Status status = record_.Admit();
  if (status.ok()) {
    if (!operation_.names.observes()) environment().clients->Note(record_.engine_context().client);
    // Probes have a budget of their own, so that they are served while the other one is full.
    ClientBudgets& budgets = operation_.names.observes() ? *environment().probe_memory : *environment().message_memory;
    memory_ = Budget::Share(budgets.Of(record_.engine_context().client));
    status = core::Hold(bytes_, memory_);
  }
  if (!status.ok()) Took(status);
  return status.ok();
}

absl::Status Call::HoldArriving(int64_t bytes) { return core::Hold(bytes_ + bytes, memory_); }

void Call::Begin() {
  {
    const MutexLock lock(mutex_);
    admitted_ = true;
  }
  const absl::Status status = work_->Admitted();
  if (status.ok() && has_one_message()) return TakeSoon();
  Took(status);
}

void Call::TakeSoon() {
  const Received received = Look();
  const bool is_small = received.bytes <= kSmallBytes && !received.is_compressed;
  const bool holds_much = memory_.budget().held() > kFewCalls * kBytesOfCall;
  takes_in_pool_ = !is_small || holds_much;
  if (!takes_in_pool_) return Took(Take());
  const absl::Duration cost =
      received.time_of_byte * static_cast<double>(received.bytes * (received.is_compressed ? kUsualRatio : 1));
  core::WorkAttributes attributes = {
      .client = record_.engine_context().client, .due = MonotonicNow() + kPatienceForWork * cost, .cost = cost};
  core::FairPool::Task task = core::FairPool::Timed([this, holds_much, keep = shared_from_this()] {
    const core::RequestContext& context = record_.engine_context();
    absl::Status taken = *context.cancelled ? absl::CancelledError("the client cancelled")
                         : MonotonicNow() >= context.deadline
                             ? absl::DeadlineExceededError("the deadline passed before the message was read")
                             : Take();
    Took(taken);
    if (holds_much && environment().clients->several()) absl::SleepFor(kPause);
  });
  // The memory of calls bounds the number of small messages.
  if (is_small) return environment().work->Submit(std::move(attributes), std::move(task));
  absl::Status status = HoldArriving(received.bytes);
  if (status.ok()) status = environment().work->TrySubmit(std::move(attributes), std::move(task));
  if (!status.ok()) Took(status);
}

void Call::Took(const absl::Status& status, bool half_closed) {
  bool was_read = false;
  {
    const MutexLock lock(mutex_);
    was_read = std::exchange(reading_, false);
    if (!status.ok() || half_closed) NoteEnd(status);
    --busy_;
  }
  if (was_read && !status.ok()) work_->Cancel(status);
  Advance();
}

void Call::WatchGate() {
  if (has_one_message() || operation_.names.observes()) return;
  auto on_stopping = [weak = weak_from_this()] {
    if (const std::shared_ptr<Call> call = weak.lock()) call->OnStopping();
  };
  // A stopping server takes no further uploads. Other streams are served until the gate closes.
  gate_watch_ = operation_.kind == RpcKind::kClientStream ? environment().gate.WhenStopping(std::move(on_stopping))
                                                          : environment().gate.WhenClosed(std::move(on_stopping));
}

void Call::OnStopping() {
  {
    const MutexLock lock(mutex_);
    if (ended_.has_value() && !work_->HasHeld()) return;
  }
  End(core::ServerIsStopping());
}

absl::Status Call::Take() {
  absl::Status status = work_->Take();
  memory_.SetAmount(bytes_);
  return status;
}

void Call::ReadDone(bool ok) {
  MutexLock lock(mutex_);
  if (ended_.has_value()) {
    reading_ = false;
    lock.Unlock();
    return Advance();
  }
  ++busy_;  // and reading_ stays set: the next read overwrites the message
  lock.Unlock();
  if (ok) return TakeSoon();
  Took(work_->HalfClose(), true);
}

void Call::WriteDone(bool ok) {
  {
    const MutexLock lock(mutex_);
    write_timer_.End();
    outgoing_ = CallAnswer();
    record_.answers().SetWaiting(false);
    work_->Written();
    if (!ok) reader_gone_ = true;
  }
  if (!ok) work_->Cancel(absl::CancelledError("the client disconnected"));
  Advance();
}

void Call::Cancelled() { work_->Cancel(absl::CancelledError("the client cancelled")); }

void Call::Expired() {
  const absl::Status status = absl::DeadlineExceededError("the deadline passed");
  End(status);
  work_->Cancel(status);
}

void Call::Done() {
  {
    const MutexLock lock(mutex_);
    write_timer_.End();
    record_.answers().SetHeld(0);
  }
  memory_.SetAmount(0);
  self_.reset();
}

void Call::Advance() {
  const std::shared_ptr<Call> keep = shared_from_this();  // once finished, gRPC may release its reference
  MutexLock lock(mutex_);
  if (finished_) return;
  for (Operations next = TakeNext(); next.read || next.write; next = TakeNext()) {
    lock.Unlock();
    if (next.write) BeginWrite(outgoing_);
    if (next.read) BeginRead();
    lock.Lock();
    --busy_;
    if (finished_) return;
  }
  const bool waits = !work_->HasWork() && !write_timer_.writing() && busy_ == 0;
  idle_.Set(waits && !ended_.has_value() && work_->MayBeIdle());
  if (!waits || !ended_.has_value()) return;
  finished_ = true;
  const bool admitted = admitted_;
  const absl::Status status = *ended_;
  std::optional<CallAnswer> answer;
  if (status.ok()) answer = work_->LastAnswer();
  alarm_.reset();
  record_.answers().SetHeld(answer.has_value() ? std::max<int64_t>(1, static_cast<int64_t>(answer->bytes)) : 0);
  record_.answers().SetWaiting(true);
  if (record_.answers().is_listed()) KeepAbortable();
  lock.Unlock();
  if (admitted) work_->Ended();
  Finish(status, std::move(answer));
}

Call::Operations Call::TakeNext() {
  Operations next;
  if (!write_timer_.writing()) {
    std::optional<CallAnswer> answer = work_->NextAnswer();
    next.write = answer.has_value();
    if (next.write) outgoing_ = *std::move(answer);
  }
  next.read = !reading_ && !ended_.has_value() && work_->HasRoom();
  if (next.write) {
    const absl::Time now = MonotonicNow();
    write_timer_.Begin(now);
    HoldAnswers();
    record_.answers().SetWaiting(true);
    if (!operation_.names.observes()) SetTimer(write_timer_.NextCheck(now));
  }
  reading_ |= next.read;
  if (next.read || next.write) ++busy_;
  return next;
}

void Call::NoteEnd(const absl::Status& status) {
  if (!ended_.has_value() || (ended_->ok() && !status.ok())) ended_ = status;
  if (!ended_->ok()) work_->RemoveHeld();
}

void Call::End(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    NoteEnd(status);
  }
  Advance();
}

void Call::EndNow(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (finished_) return;
  NoteEnd(status);
  if (write_timer_.writing()) {
    ++busy_;
    lock.Unlock();
    Abort(status);
    lock.Lock();
    --busy_;
  }
  lock.Unlock();
  Advance();
}

void Call::SetWorkTimer(absl::Time time) {
  work_timer_at_ = time;
  SetTimer(time);
}

void Call::SetWaitingBytes(size_t bytes) {
  constexpr size_t kStep = 16 << 10;  // smaller changes are charged with the next message
  const size_t before = std::exchange(waiting_bytes_, bytes);
  if (before / kStep != bytes / kStep) HoldAnswers();
}

void Call::SetTransportBytes(size_t bytes) {
  const MutexLock lock(mutex_);
  transport_bytes_ = bytes;
  HoldAnswers();
}

void Call::HoldAnswers() {
  record_.answers().SetHeld(static_cast<int64_t>(outgoing_.bytes + waiting_bytes_ + transport_bytes_));
}

void Call::RunLater(absl::AnyInvocable<void()> task) { record_.RunInPool(std::move(task)); }

void Call::RunForAnswer(CallRecord& record, absl::AnyInvocable<void()> task) {
  constexpr int64_t kLargeBytes = 64 << 10;
  if (record.answers().bytes() >= kLargeBytes)
    return RunLater([keep = shared_from_this(), task = std::move(task)]() mutable { task(); });
  task();
}

void Call::AdvanceLater() {
  if (std::exchange(advance_scheduled_, true)) return;
  if (delivery_ == nullptr) delivery_ = &environment().deliveries.Next();
  delivery_->Post([this, keep = shared_from_this()] {
    {
      const MutexLock lock(mutex_);
      advance_scheduled_ = false;
    }
    Advance();
  });
}

void Call::SetTimer(absl::Time time) {
  if (time >= timer_at_) return;
  timer_at_ = time;
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(ToWallClock(time)), [weak = weak_from_this(), timer = ++timer_](bool reached) {
    const std::shared_ptr<Call> call = weak.lock();
    if (reached && call != nullptr) call->OnTimer(timer);
  });
}

void Call::OnTimer(int64_t timer) {
  MutexLock lock(mutex_);
  if (timer != timer_) return;
  timer_at_ = absl::InfiniteFuture();
  if (finished_ && !write_timer_.writing()) return;
  const absl::Time now = MonotonicNow();
  const bool is_stuck = write_timer_.IsStuck(now) && !operation_.names.observes();
  const bool work_timer_fired = !finished_ && now >= work_timer_at_;
  if (work_timer_fired) work_timer_at_ = absl::InfiniteFuture();
  ++busy_;
  lock.Unlock();
  if (is_stuck) EndUnread(absl::CancelledError("the client did not read within --slow-reader-timeout"));
  if (work_timer_fired) work_->OnTimer(now);
  lock.Lock();
  --busy_;
  if (!is_stuck && write_timer_.writing() && !operation_.names.observes()) SetTimer(write_timer_.NextCheck(now));
  if (!finished_) SetTimer(work_timer_at_);
  lock.Unlock();
  Advance();
}

void Call::EndUnread(const absl::Status& why) {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(unread_, true)) return;  // the write's time and the answers' account ran out together
    finished = finished_;
  }
  const bool is_slow = absl::IsCancelled(why);
  if (is_slow && !finished) {
    record_.CancelSlowReader();
    return Abort(why);
  }
  environment().metrics.CountSlowReader(record_.names().rpc());
  if (is_slow) {
    // The call's end is already counted and logged, so its status cannot change.
    LogFields fields = {{"id", record_.engine_context().id}, {"rpc", std::string(record_.names().rpc())}};
    record_.trace().AppendTo(fields);
    environment().log.Info("cancelled: the client did not read its answer within --slow-reader-timeout",
                           std::move(fields));
  }
  if (finished) return Abort(why);
  EndNow(why);
  work_->Cancel(why);
}

}  // namespace longshort::server
