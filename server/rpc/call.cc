#include "server/rpc/call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/requests/request_context.h"
#include "server/rpc/request_message.h"

namespace longshort::server {
namespace {

// The largest answer that fits, with its 5-byte prefix, into HTTP/2's initial stream window. A timer for each such
// answer would cost more than a short call.
constexpr int64_t kUnwatchedBytes = 65535 - 5;
// Limit of the memory of such answers, over all calls, that clients can hold by granting no window. It includes
// kBytesOfCall for each call. Beyond the limit each answer has a timer.
constexpr int64_t kUnwatchedBytesOfAll = int64_t{16} << 20;
constexpr int64_t kBytesOfCall = int64_t{16} << 10;

}  // namespace

Call::Call(const CallEnvironment& environment, const Rpc& rpc, CallOrigin origin)
    : rpc_(rpc),
      record_(environment, rpc.names, std::move(origin)),
      work_(rpc.work(*this)),
      idle_(environment.gate),
      write_timer_(environment.slow_reader_timeout) {
  if (has_one_message()) ended_ = absl::OkStatus();
}

Call::~Call() {
  if (gate_watch_ != 0) environment().gate.RemoveWatch(gate_watch_);
}

void Call::Begin(grpc::ByteBuffer* first) {
  self_ = shared_from_this();
  WatchGate();
  absl::Status status = record_.Admit();
  const bool admitted = status.ok();
  if (admitted) status = BeginWork(first);
  {
    const MutexLock lock(mutex_);
    admitted_ = admitted;
    if (!status.ok()) NoteEnd(status);
    --busy_;
  }
  Advance();
}

absl::Status Call::BeginWork(grpc::ByteBuffer* first) {
  LS_RETURN_IF_ERROR(work_->Admitted());
  return has_one_message() ? Take(*first) : absl::OkStatus();
}

void Call::WatchGate() {
  if (has_one_message() || rpc_.names.observes()) return;
  auto on_stopping = [weak = weak_from_this()] {
    if (const std::shared_ptr<Call> call = weak.lock()) call->OnStopping();
  };
  // A stopping server takes no further uploads. Other streams are served until the gate closes.
  gate_watch_ = rpc_.kind == RpcKind::kClientStream ? environment().gate.WhenStopping(std::move(on_stopping))
                                                    : environment().gate.WhenClosed(std::move(on_stopping));
}

void Call::OnStopping() {
  {
    const MutexLock lock(mutex_);
    if (ended_.has_value() && !work_->HasHeld()) return;
  }
  End(core::ServerIsStopping());
}

absl::Status Call::Take(grpc::ByteBuffer& bytes) {
  const std::unique_ptr<google::protobuf::Message> message(rpc_.request->New());
  LS_ASSIGN_OR_RETURN(const Budget::Share memory, Decode(bytes, *message));
  return work_->Take(*message);
}

absl::StatusOr<Budget::Share> Call::Decode(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  // gRPC also begins a call of one message if the message did not arrive: the client cancelled, the deadline passed,
  // the message was over the limit, or there was none. The context may not show that yet, but the bytes do.
  if (!bytes.Valid()) return absl::CancelledError("the call ended before its message arrived");
  if (rpc_.max_request_bytes > 0 && bytes.Length() > rpc_.max_request_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", bytes.Length(), " bytes; it must have at most ", rpc_.max_request_bytes));
  }
  if (IsCompressed(bytes)) environment().metrics.CountCompressedMessage();
  const int64_t max_bytes =
      rpc_.max_request_bytes > 0 ? static_cast<int64_t>(rpc_.max_request_bytes) : environment().limits.message_bytes;
  return ParseMessage(bytes, message, max_bytes, environment().message_memory);
}

void Call::ReadDone(bool ok) {
  MutexLock lock(mutex_);
  if (!ended_.has_value()) {
    ++busy_;
    lock.Unlock();
    const absl::Status status = ok ? Take(incoming_) : work_->HalfClose();
    incoming_.Clear();
    if (!status.ok()) {
      End(status);
      work_->Cancel(status);
    }
    lock.Lock();
    if (!ok) NoteEnd(absl::OkStatus());
    --busy_;
  }
  reading_ = false;  // only now: the next read overwrites the message
  lock.Unlock();
  Advance();
}

void Call::WriteDone(bool ok) {
  {
    const MutexLock lock(mutex_);
    write_timer_.End();
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
  *environment().unwatched_answer_bytes -= std::exchange(unwatched_bytes_, 0);
  {
    const MutexLock lock(mutex_);
    write_timer_.End();
  }
  self_.reset();
}

void Call::Advance() {
  const std::shared_ptr<Call> keep = shared_from_this();  // once finished, gRPC may release its reference
  MutexLock lock(mutex_);
  if (finished_) return;
  for (Operations next = TakeNext(); next.read || next.write; next = TakeNext()) {
    lock.Unlock();
    if (next.write) BeginWrite(&outgoing_);
    if (next.read) BeginRead(&incoming_);
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
  std::optional<grpc::ByteBuffer> answer;
  if (status.ok()) answer = work_->LastAnswer();
  alarm_.reset();
  if (answer.has_value()) WatchLastAnswer(static_cast<int64_t>(answer->Length()));
  lock.Unlock();
  if (admitted) work_->Ended();
  Finish(status, std::move(answer));
}

Call::Operations Call::TakeNext() {
  Operations next;
  if (!write_timer_.writing()) {
    std::optional<grpc::ByteBuffer> answer = work_->NextAnswer();
    next.write = answer.has_value();
    if (next.write) outgoing_ = *std::move(answer);
  }
  next.read = !reading_ && !ended_.has_value() && work_->HasRoom();
  if (next.write) {
    const absl::Time now = MonotonicNow();
    write_timer_.Begin(now);
    if (!rpc_.names.observes()) SetTimer(write_timer_.NextCheck(now));
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
    Abort();
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
  const bool is_stuck = write_timer_.IsStuck(now) && !rpc_.names.observes();
  const bool work_timer_fired = !finished_ && now >= work_timer_at_;
  if (work_timer_fired) work_timer_at_ = absl::InfiniteFuture();
  const bool finished = finished_;
  ++busy_;
  lock.Unlock();
  if (is_stuck) CancelSlowReader(finished);
  if (work_timer_fired) work_->OnTimer(now);
  lock.Lock();
  --busy_;
  if (!is_stuck && write_timer_.writing() && !rpc_.names.observes()) SetTimer(write_timer_.NextCheck(now));
  if (!finished_) SetTimer(work_timer_at_);
  lock.Unlock();
  Advance();
}

void Call::WatchLastAnswer(int64_t bytes) {
  if (bytes <= kUnwatchedBytes) {
    std::atomic<int64_t>& all = *environment().unwatched_answer_bytes;
    unwatched_bytes_ = bytes + kBytesOfCall;
    if (all.fetch_add(unwatched_bytes_) + unwatched_bytes_ <= kUnwatchedBytesOfAll) return;
    all -= std::exchange(unwatched_bytes_, 0);
  }
  KeepAbortable();
  const absl::Time now = MonotonicNow();
  write_timer_.Begin(now);
  timer_at_ = absl::InfiniteFuture();
  SetTimer(write_timer_.NextCheck(now));
}

void Call::CancelSlowReader(bool finished) {
  if (!finished) {
    record_.CancelSlowReader();
  } else {
    // The call's end is already counted and logged, so its status cannot change.
    const char* rpc = record_.names().rpc();
    environment().metrics.CountSlowReader(rpc);
    LogFields fields = {{"id", record_.engine_context().id}, {"rpc", std::string(rpc)}};
    record_.trace().AppendTo(fields);
    environment().log.Info("cancelled: the client did not read its answer within --slow-reader-timeout",
                           std::move(fields));
  }
  Abort();
}

}  // namespace longshort::server
