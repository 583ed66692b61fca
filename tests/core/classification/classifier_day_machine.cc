#include "tests/core/classification/classifier_day_machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>

#include "core/classification/batch_former.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core {
namespace {

constexpr int64_t kPreparationThreads = 2;

int64_t UnitsOf(const models::ClassifierItem& item) {
  const auto* image = std::get_if<models::ImageItem>(&item);
  return image == nullptr ? TokensOf(item) : image->height * image->width;
}

int32_t IdOf(const models::ClassifierItem& item) {
  const auto* image = std::get_if<models::ImageItem>(&item);
  return image == nullptr ? std::get<models::TokenItem>(item).documents[0][0] : static_cast<int32_t>(image->values[0]);
}

class Deaf final : public ClassificationListener {
 public:
  void OnFinished(absl::StatusOr<ItemResult>) override {}
};

}  // namespace

models::ClassifierItem ItemCall::Item() const {
  if (preparation > absl::ZeroDuration()) return ImageOf(units, 1, static_cast<float>(id));
  models::TokenItem item;
  std::vector<int32_t>& document = item.documents.emplace_back();
  // All are of one size, too large for a thread to keep it to itself once it is free: so memory shows what is not
  // freed.
  document.reserve(1024);
  document.assign(units, 1);
  document[0] = id;
  return item;
}

class ClassifierDayMachine::Listener final : public ClassificationListener {
 public:
  Listener(ClassifierDayMachine& machine, std::shared_ptr<ItemCall> call) : machine_(machine), call_(std::move(call)) {}
  void OnFinished(absl::StatusOr<ItemResult> scores) override { machine_.Hear(call_, std::move(scores)); }

 private:
  ClassifierDayMachine& machine_;
  const std::shared_ptr<ItemCall> call_;
};

ClassifierDayMachine::ClassifierDayMachine(FakeClock& clock, const DynamicBatchingEngine::Options& options)
    : clock_(clock), options_(options), pool_(*FairPool::Create(kPreparationThreads)), engine_(MakeEngine()) {}

ClassifierDayMachine::~ClassifierDayMachine() { End(); }

std::unique_ptr<DynamicBatchingEngine> ClassifierDayMachine::MakeEngine() {
  auto classifier = std::make_unique<FakeClassifier>();
  classifier->on_batch = [this](absl::Span<const models::ClassifierItem* const> items) { return RunBatch(items); };
  classifier->on_replicate = [this] { return Replicate(); };
  return *DynamicBatchingEngine::Create(WeightsOf(std::move(classifier)), pool_, nullptr, clock_, options_);
}

void ClassifierDayMachine::ThrowNext() {
  std::lock_guard lock(mutex_);
  throws_ = true;
}

void ClassifierDayMachine::StallNext(absl::Duration stall) {
  std::lock_guard lock(mutex_);
  stall_ = stall;
}

void ClassifierDayMachine::RefuseReplicasUntil(absl::Time time) {
  std::lock_guard lock(mutex_);
  no_replicas_until_ = time;
}

void ClassifierDayMachine::Replace() {
  End();
  engine_ = MakeEngine();
}

void ClassifierDayMachine::End() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  std::atomic<bool> over = false;
  std::thread ending([&] {
    engine_->Drain(absl::InfinitePast());  // ends all waiting items, once the running batches have ended
    over = true;
  });
  const auto listener = std::make_shared<Deaf>();
  RequestContext gone;
  *gone.cancelled = true;
  while (!absl::IsUnavailable(engine_->Classify({.context = gone, .item = Document(1)}, listener))) {
    std::this_thread::yield();
  }
  while (!over) {
    {
      std::lock_guard lock(mutex_);
      batches_.EndNext();
      preparations_.EndNext();
    }
    std::this_thread::yield();
  }
  ending.join();
  last_forced_end_ = clock_.Now();
  EXPECT_TRUE(calls_.empty()) << "an engine has ended without ending all waiting items";
  workers_.clear();
  ending_ = false;
}

absl::Status ClassifierDayMachine::Send(const std::shared_ptr<ItemCall>& call, absl::Duration work_until_prepared) {
  call->submitted = clock_.Now();
  call->prepared = call->preparation == absl::ZeroDuration();
  ClassificationRequest request{
      .context = call->context, .item = {}, .bytes = call->id, .work_until_prepared = work_until_prepared};
  if (call->prepared) {
    request.item = call->Item();
  } else {
    request.item = [this, call] { return Prepare(*call); };
  }
  {
    std::lock_guard lock(mutex_);
    calls_[call->id] = call;
    waiting_ids_ += call->id;
    unprepared_ += call->prepared ? 0 : 1;
  }
  absl::Status status = engine_->Classify(std::move(request), std::make_shared<Listener>(*this, call));
  if (!status.ok()) {
    std::lock_guard lock(mutex_);
    calls_.erase(call->id);
    waiting_ids_ -= call->id;
    unprepared_ -= call->prepared ? 0 : 1;
  }
  Settle();
  return status;
}

std::vector<std::shared_ptr<ItemCall>> ClassifierDayMachine::TakeEnded() {
  std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void ClassifierDayMachine::EndDue() {
  while (next() <= clock_.Now()) {
    {
      std::lock_guard lock(mutex_);
      (batches_.next() <= preparations_.next() ? batches_ : preparations_).EndNext();
    }
    Settle();
  }
}

absl::Time ClassifierDayMachine::next() const {
  std::lock_guard lock(mutex_);
  return std::min(batches_.next(), preparations_.next());
}

bool ClassifierDayMachine::has_idle_worker() const {
  std::lock_guard lock(mutex_);
  return batches_.running() + Down() < WorkerCount();
}

absl::Status ClassifierDayMachine::RunBatch(absl::Span<const models::ClassifierItem* const> items) {
  std::vector<std::shared_ptr<ItemCall>> calls;
  absl::Duration takes = kFixedRun;
  bool throws = false, fails = false;
  int64_t units = 0;
  std::unique_lock lock(mutex_);
  Worker& worker = workers_[std::this_thread::get_id()];
  worker.running = true;
  EXPECT_EQ(worker.next_replica, absl::InfiniteFuture());
  for (const models::ClassifierItem* item : items) {
    const std::shared_ptr<ItemCall>& call = calls.emplace_back(calls_.at(IdOf(*item)));
    EXPECT_FALSE(std::exchange(call->in_batch, true)) << "an item runs twice at once";
    waiting_ids_ -= call->id;
    EXPECT_LT(call->tries++, kMaxTries);
    EXPECT_FALSE(call->OnLastTry() && OnProbation(worker));
    EXPECT_TRUE(call->failures == 0 || items.size() == 1) << "an item that failed runs with others";
    EXPECT_FALSE(call->context.cancelled->load() || clock_.Now() >= call->context.deadline);
    units += UnitsOf(*item);
    fails |= call->poisonous;
  }
  const BatchFormer::Options& limits = options_.items.batches;
  EXPECT_LE(static_cast<int64_t>(items.size()), OnProbation(worker) ? 1 : limits.max_batch_size);
  EXPECT_TRUE(items.size() == 1 || TokensOf(*items[0]) == 0 || units <= limits.max_batch_tokens);
  takes += kRunOfUnit * units + std::exchange(stall_, absl::ZeroDuration());
  throws = std::exchange(throws_, false);
  ++counts_.batches;
  counts_.largest_batch = std::max(counts_.largest_batch, static_cast<int64_t>(items.size()));
  counts_.failed += fails || throws ? 1 : 0;
  changed_.notify_all();
  batches_.DoUntil(clock_.Now() + takes, lock);
  for (const std::shared_ptr<ItemCall>& call : calls) {
    call->in_batch = false;
    waiting_ids_ += call->id;
    call->failures += fails || throws ? 1 : 0;
    call->worker_time += takes * (static_cast<double>(call->units) / static_cast<double>(units));
  }
  Judge(worker, fails, throws);
  if (throws) throw std::runtime_error("the device is gone");
  return fails ? absl::InternalError("this batch cannot be run") : absl::OkStatus();
}

absl::StatusOr<models::ClassifierItem> ClassifierDayMachine::Prepare(ItemCall& call) {
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  preparations_.DoUntil(clock_.Now() + call.preparation, lock);
  EXPECT_FALSE(std::exchange(call.prepared, true)) << "prepared twice";
  --unprepared_;
  if (call.broken) return absl::InvalidArgumentError("not an image");
  return call.Item();
}

absl::Status ClassifierDayMachine::Replicate() {
  std::lock_guard lock(mutex_);
  const absl::Time now = clock_.Now();
  ++counts_.replicas;
  const auto worker = workers_.find(std::this_thread::get_id());
  if (worker == workers_.end()) return absl::OkStatus();  // one of a new engine
  // At the end batches end together, so that this machine may judge a worker before another that the engine judges
  // first.
  EXPECT_TRUE(ending_ || worker->second.next_replica <= now);
  worker->second.next_replica = absl::InfiniteFuture();
  if (now >= no_replicas_until_) return absl::OkStatus();
  worker->second.next_replica = now + kRebuildDelay;
  changed_.notify_all();
  return absl::ResourceExhaustedError("no memory for a replica");
}

void ClassifierDayMachine::Hear(const std::shared_ptr<ItemCall>& call, absl::StatusOr<ItemResult> scores) {
  std::lock_guard lock(mutex_);
  EXPECT_FALSE(std::exchange(call->ended, true)) << "ended twice";
  if (!std::exchange(call->prepared, true)) --unprepared_;
  call->ended_at = clock_.Now();
  call->scores = std::move(scores);
  calls_.erase(call->id);
  waiting_ids_ -= call->id;
  ended_.push_back(call);
  changed_.notify_all();
}

void ClassifierDayMachine::Settle() {
  // The engine does not report everything that happens in it.
  constexpr auto kPollInterval = std::chrono::microseconds(50);
  const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::unique_lock lock(mutex_);
  while (!Settled()) {
    ASSERT_LT(std::chrono::steady_clock::now(), latest) << "a worker sleeps while there is work for it";
    changed_.wait_for(lock, kPollInterval);
  }
  counts_.max_waiting = std::max(counts_.max_waiting, engine_->state().waiting_items);
}

bool ClassifierDayMachine::Settled() const {
  const ClassifierEngineState state = engine_->state();
  for (const auto& [id, worker] : workers_) {
    if (worker.next_replica <= clock_.Now()) return false;
  }
  // Whether something is on its way from one place to another.
  if (state.waiting_bytes != waiting_ids_) return false;
  if (!batches_.settled() || !preparations_.settled()) return false;
  const int64_t ready = state.waiting_items - unprepared_;
  if (HasWorkForIdle(ready)) return false;
  const int64_t preparing = preparations_.running();
  const int64_t max_ahead = 2 * WorkerCount() * options_.items.batches.max_batch_size;
  return unprepared_ == preparing || preparing == kPreparationThreads || preparing + ready >= max_ahead;
}

absl::Time ClassifierDayMachine::next_replica() const {
  std::lock_guard lock(mutex_);
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, worker] : workers_) next = std::min(next, worker.next_replica);
  return next;
}

void ClassifierDayMachine::Judge(Worker& worker, bool failed, bool threw) {
  worker.running = false;
  if (!failed && !threw) {
    worker.failures_in_a_row = 0;
    worker.failing = false;
    return;
  }
  const bool no_better = OnProbation(worker);
  if (++worker.failures_in_a_row < kMaxFailuresInARow && !threw && !no_better) return;
  worker.failures_in_a_row = 0;
  worker.failing = true;
  worker.next_replica = no_better ? clock_.Now() + kRebuildDelay : clock_.Now();
}

int64_t ClassifierDayMachine::Down() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const auto& worker) { return worker.second.next_replica != absl::InfiniteFuture(); });
}

bool ClassifierDayMachine::OnProbation(const Worker& worker) const {
  // Those that have not run anything have not failed.
  if (!worker.failing || static_cast<int64_t>(workers_.size()) < WorkerCount()) return worker.failing;
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& other) { return !other.second.failing; });
}

bool ClassifierDayMachine::HasWorkForIdle(int64_t ready) const {
  if (ready == 0 || batches_.running() + Down() >= WorkerCount()) return false;
  const int64_t last_tries = std::count_if(calls_.begin(), calls_.end(), [](const auto& call) {
    return !call.second->in_batch && call.second->OnLastTry();
  });
  if (ready > last_tries || static_cast<int64_t>(workers_.size()) < WorkerCount()) return true;
  return std::any_of(workers_.begin(), workers_.end(), [this](const auto& worker) {
    const bool idle = !worker.second.running && worker.second.next_replica == absl::InfiniteFuture();
    return idle && !OnProbation(worker.second);
  });
}

}  // namespace longshort::core
