#include "tests/models/gpu/emulated_device.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/models/gpu/device_memory.h"

namespace longshort::models {
namespace {

// A piece of queued work.
struct Work {
  std::string name;
  std::function<absl::Status()> run;
  bool loses_the_device = false;
  std::optional<KernelCall> captured = std::nullopt;  // of a graph's launch
};

struct Event final : GpuEvent {
  int64_t works = 0;  // number of works queued up to it
  // Simulated time of the device; infinite until it has run. Shared with the queued work.
  std::shared_ptr<absl::Duration> time = std::make_shared<absl::Duration>(absl::InfiniteDuration());
};

struct Graph final : GpuGraph {
  std::function<absl::Status()> body;
  std::vector<Work> works;
};

class Device final : public EmulatedDevice {
 public:
  explicit Device(const EmulatedDeviceOptions& options)
      : emulation_(options.emulation),
        hidden_(options.memory_bytes, /*hidden=*/true),
        shared_(options.memory_bytes, /*hidden=*/false),
        memory_bytes_(options.memory_bytes),
        library_(options.library) {
    facts_ = {.name = "emulated",
              .number = options.number,
              .major = options.major,
              .minor = options.minor,
              .multiprocessors = 1,
              .memory_bytes = options.memory_bytes,
              .max_shared_bytes = options.max_shared_bytes};
    if (library_ == nullptr) return;
    stream_ = library_->Open();
    library_->SetCurrent(stream_);
  }

  ~Device() override {
    if (library_ != nullptr) library_->Close(stream_);
    for (const auto& [memory, bytes] : pinned_) std::free(memory);
  }

  const GpuFacts& facts() const override { return facts_; }
  int64_t calls() const override { return calls_; }
  int64_t replays() const override { return replays_; }
  int64_t queued() const override { return static_cast<int64_t>(queue_.size()); }
  const std::map<std::string, int64_t>& kernels_run() const override { return kernels_run_; }
  void FailAfter(int64_t calls, DeviceFault fault) override {
    fault_call_ = calls_ + calls;
    fault_ = fault;
  }
  void FailAfterReplays(int64_t replays, DeviceFault fault) override {
    fault_replay_ = queued_replays_ + replays;
    replay_fault_ = fault;
  }
  int64_t free_bytes() const override { return memory_bytes_ - used_bytes(); }
  int64_t allocations() const override {
    return hidden_.pieces() + shared_.pieces() + static_cast<int64_t>(pinned_.size());
  }
  void SetEmulation(const cuda::emulated::EmulationOptions& options) override { emulation_ = options; }
  bool has_failed() override { return lost_; }
  void SetWorkTime(std::function<absl::Duration(const std::string& work)> time_of) override {
    time_of_work_ = std::move(time_of);
  }

  absl::StatusOr<void*> Allocate(size_t bytes, GpuMemoryUse use) override;
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override;
  void Free(void* memory) override;
  void FreePinned(void* memory) override;

  absl::Status Copy(void* to, const void* from, size_t bytes) override;
  absl::Status Launch(const KernelCall& call) override;
  absl::Status BeforeLibraryCalls() override;

  absl::StatusOr<std::unique_ptr<GpuEvent>> Record() override;
  absl::Status Wait(const GpuEvent& event) override;
  absl::StatusOr<absl::Duration> Elapsed(const GpuEvent& from, const GpuEvent& to) override;
  absl::Status Synchronize() override;

  absl::StatusOr<std::unique_ptr<GpuGraph>> Capture(const std::function<absl::Status()>& body) override;
  absl::Status Replay(GpuGraph& graph) override;

 private:
  int64_t used_bytes() const { return 2 * memory_bytes_ - hidden_.free_bytes() - shared_.free_bytes(); }
  // Counts a call, and returns its injected error. A call that queues work returns OK even if the work will lose the
  // device.
  absl::Status CallThatQueues();
  absl::Status Call(const char* verb);
  absl::Status CallOutsideOfCaptures(const char* verb);
  absl::Status Lose(absl::string_view why);
  absl::Status Lost() const { return absl::InternalError(absl::StrCat("the emulated device is lost: ", why_lost_)); }
  bool IsOfLibrary(uint64_t word) const;
  absl::Status CheckCopied(const void* begin, size_t bytes, const char* field) const;
  absl::Status CheckLibraryMemory(const KernelCall& call) const;

  // Queues or records work. In the run of a graph, runs the recorded work instead.
  absl::Status Add(Work work);
  absl::Status RunQueued(int64_t end);
  absl::Status RunOne(const Work& work);
  absl::Status RunKernel(const KernelCall& call) {
    ++kernels_run_[call.name];
    return cuda::emulated::RunKernel(call, emulation_);
  }
  absl::Status RunGraph(const std::function<absl::Status()>& body, std::vector<Work>& works);
  absl::Status TakeArguments(const KernelCall& call);
  absl::Status RunGraphUpTo(size_t end);

  GpuFacts facts_;
  cuda::emulated::EmulationOptions emulation_;
  DeviceMemory hidden_, shared_;
  const int64_t memory_bytes_;
  std::map<void*, size_t> pinned_;
  LibraryStreams* const library_;
  int64_t stream_ = LibraryStreams::kDefault;

  std::vector<Work> queue_;  // work that has not run yet
  int64_t queued_ = 0;       // ever
  Graph* recorded_ = nullptr;
  // The running graph, the position of its body, and the number of its works that have run.
  std::vector<Work>* running_ = nullptr;
  size_t reached_ = 0, run_ = 0;

  std::map<std::string, int64_t> kernels_run_;
  std::function<absl::Duration(const std::string& work)> time_of_work_;
  absl::Duration time_;  // simulated, of all works that have run
  int64_t calls_ = 0, fault_call_ = -1, replays_ = 0;
  DeviceFault fault_ = DeviceFault::kError;
  int64_t queued_replays_ = 0, fault_replay_ = -1;
  DeviceFault replay_fault_ = DeviceFault::kError;
  bool next_work_loses_ = false, lost_ = false;
  std::string why_lost_;
};

absl::Status Device::CallThatQueues() {
  if (lost_) return Lost();
  if (running_ != nullptr) return absl::OkStatus();  // a GPU makes no such call: it runs the graph
  if (calls_++ != fault_call_) return absl::OkStatus();
  switch (fault_) {
    case DeviceFault::kOutOfMemory:
      return absl::ResourceExhaustedError("injected lack of memory of the emulated device");
    case DeviceFault::kError:
      return absl::InternalError("injected failure of the emulated device");
    case DeviceFault::kLost:
      break;
  }
  next_work_loses_ = true;
  return absl::OkStatus();
}

absl::Status Device::Call(const char* verb) {
  LS_RETURN_IF_ERROR(CallThatQueues());
  return next_work_loses_ ? Lose(absl::StrCat("injected loss at ", verb)) : absl::OkStatus();
}

absl::Status Device::CallOutsideOfCaptures(const char* verb) {
  if (recorded_ != nullptr || running_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(verb, " within a capture; it may only queue work"));
  }
  return Call(verb);
}

absl::Status Device::Lose(absl::string_view why) {
  if (!lost_) why_lost_ = std::string(why);
  lost_ = true;
  return Lost();
}

absl::StatusOr<void*> Device::Allocate(size_t bytes, GpuMemoryUse use) {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Allocate"));
  if (bytes == 0) return absl::InvalidArgumentError("an allocation of 0 bytes; at least 1 is needed");
  DeviceMemory& memory = use == GpuMemoryUse::kKernels ? hidden_ : shared_;
  void* const piece = used_bytes() + static_cast<int64_t>(bytes) > memory_bytes_ ? nullptr : memory.Allocate(bytes);
  if (piece == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the emulated device has no memory for ", bytes, " bytes; ",
                                                     memory_bytes_ - used_bytes(), " are free"));
  }
  return piece;
}

absl::StatusOr<void*> Device::AllocatePinned(size_t bytes) {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("AllocatePinned"));
  void* const memory = std::malloc(bytes);
  std::memset(memory, 0xff, bytes);
  pinned_[memory] = bytes;
  return memory;
}

void Device::Free(void* memory) {
  if (memory != nullptr && !hidden_.Free(memory) && !shared_.Free(memory)) std::abort();
}

void Device::FreePinned(void* memory) {
  if (memory == nullptr) return;
  if (pinned_.erase(memory) == 0) std::abort();
  std::free(memory);
}

absl::Status Device::CheckCopied(const void* begin, size_t bytes, const char* field) const {
  if (hidden_.Holds(begin, bytes) || shared_.Holds(begin, bytes)) return absl::OkStatus();
  auto piece = pinned_.upper_bound(const_cast<void*>(begin));
  if (piece != pinned_.begin()) {
    piece = std::prev(piece);
    const auto* const end = static_cast<const char*>(piece->first) + piece->second;
    if (static_cast<const char*>(begin) + bytes <= end) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", bytes, " bytes at ",
                                                 absl::Hex(reinterpret_cast<uintptr_t>(begin)),
                                                 " are neither device memory nor pinned"));
}

absl::Status Device::Copy(void* to, const void* from, size_t bytes) {
  LS_RETURN_IF_ERROR(CallThatQueues());
  LS_RETURN_IF_ERROR(CheckCopied(to, bytes, "to"));
  LS_RETURN_IF_ERROR(CheckCopied(from, bytes, "from"));
  return Add({.name = "Copy", .run = [=] {
                std::memcpy(to, from, bytes);
                return absl::OkStatus();
              }});
}

absl::Status Device::Launch(const KernelCall& call) {
  LS_RETURN_IF_ERROR(CallThatQueues());
  if (call.empty()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckSharedMemory(call, facts_));
  LS_RETURN_IF_ERROR(CheckLibraryMemory(call));
  LS_RETURN_IF_ERROR(Add({.name = call.name,
                          .run = [this, call] { return RunKernel(call); },
                          .captured = recorded_ == nullptr ? std::nullopt : std::make_optional(call)}));
  return running_ == nullptr ? absl::OkStatus() : TakeArguments(call);
}

absl::Status Device::CheckLibraryMemory(const KernelCall& call) const {
  if (library_ == nullptr) return absl::OkStatus();
  for (size_t at = 0; at + sizeof(uint64_t) <= call.argument_bytes; at += sizeof(uint64_t)) {
    const void* word = nullptr;
    std::memcpy(&word, call.arguments + at, sizeof(word));
    const std::string misuse = library_->Misuse(word, stream_);
    if (!misuse.empty()) return absl::FailedPreconditionError(absl::StrCat("kernel ", call.name, " gets ", misuse));
  }
  return absl::OkStatus();
}

// Arguments of the launch that the body of a running graph has just made. On a GPU, LibTorch's memory of a capture
// stays the graph's. On the CPU its tensors have other addresses in every run, so the kernels' arguments change with
// them.
absl::Status Device::TakeArguments(const KernelCall& call) {
  Work& work = (*running_)[reached_ - 1];
  const KernelCall& captured = work.captured.value();
  const auto wrong = [&](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the body of a graph launches ", call.name, " with ", what, ", and did not when it was captured"));
  };
  const GridSize &grid = call.shape.grid, &captured_grid = captured.shape.grid;
  if (call.function != captured.function || call.argument_bytes != captured.argument_bytes ||
      call.shape.threads != captured.shape.threads || call.shape.shared_bytes != captured.shape.shared_bytes ||
      grid.x != captured_grid.x || grid.y != captured_grid.y || grid.z != captured_grid.z) {
    return wrong("this shape");
  }
  for (size_t at = 0; at < call.argument_bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0, captured_word = 0;
    std::memcpy(&word, call.arguments + at, sizeof(word));
    std::memcpy(&captured_word, captured.arguments + at, sizeof(word));
    if (word != captured_word && !(IsOfLibrary(word) && IsOfLibrary(captured_word))) {
      return wrong(absl::StrCat("the word ", absl::Hex(word), " at byte ", at, " of its arguments"));
    }
  }
  work.run = [this, call] { return RunKernel(call); };
  return absl::OkStatus();
}

// Whether it may be the address of a tensor, or of other host memory.
bool Device::IsOfLibrary(uint64_t word) const {
  constexpr uint64_t kFirst = uint64_t{0x5500} << 32, kLast = uint64_t{0x7fff} << 32 | 0xffffffff;
  const auto* const address = reinterpret_cast<const void*>(word);
  return word >= kFirst && word <= kLast && !hidden_.Spans(address) && !shared_.Spans(address);
}

absl::Status Device::Add(Work work) {
  work.loses_the_device = std::exchange(next_work_loses_, false);
  if (running_ != nullptr) {
    if (reached_ == running_->size() || (*running_)[reached_].name != work.name) {
      return absl::FailedPreconditionError(absl::StrCat("the body of a graph queues ", work.name, " as its work ",
                                                        reached_, ", and did not when it was captured"));
    }
    ++reached_;
    return absl::OkStatus();
  }
  if (recorded_ != nullptr) {
    recorded_->works.push_back(std::move(work));
    return absl::OkStatus();
  }
  queue_.push_back(std::move(work));
  ++queued_;
  return absl::OkStatus();
}

absl::Status Device::RunOne(const Work& work) {
  if (work.loses_the_device) return Lose(absl::StrCat("injected loss at ", work.name));
  absl::Status status = work.run();
  if (time_of_work_) time_ += time_of_work_(work.name);
  if (const std::string damage = hidden_.Damage() + shared_.Damage(); status.ok() && !damage.empty()) {
    status = absl::InternalError(absl::StrCat(work.name, ": ", damage));
  }
  return status.ok() ? status : Lose(status.message());
}

absl::Status Device::RunQueued(int64_t end) {
  const int64_t first = queued_ - static_cast<int64_t>(queue_.size());
  if (end <= first) return absl::OkStatus();
  std::vector<Work> works(std::make_move_iterator(queue_.begin()),
                          std::make_move_iterator(queue_.begin() + (end - first)));
  queue_.erase(queue_.begin(), queue_.begin() + (end - first));
  hidden_.Open();
  const absl::Cleanup close = [this] { hidden_.Close(); };
  for (const Work& work : works) LS_RETURN_IF_ERROR(RunOne(work));
  return absl::OkStatus();
}

absl::Status Device::BeforeLibraryCalls() {
  if (library_ != nullptr) library_->SetCurrent(stream_);
  LS_RETURN_IF_ERROR(Call("BeforeLibraryCalls"));
  if (recorded_ != nullptr) return absl::OkStatus();
  if (running_ != nullptr) return RunGraphUpTo(reached_);
  return RunQueued(queued_);
}

absl::StatusOr<std::unique_ptr<GpuEvent>> Device::Record() {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Record"));
  auto event = std::make_unique<Event>();
  LS_RETURN_IF_ERROR(Add({.name = "Record", .run = [this, time = event->time] {
                            *time = time_;
                            return absl::OkStatus();
                          }}));
  event->works = queued_;
  return event;
}

absl::StatusOr<absl::Duration> Device::Elapsed(const GpuEvent& from, const GpuEvent& to) {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Elapsed"));
  const absl::Duration begin = *static_cast<const Event&>(from).time, end = *static_cast<const Event&>(to).time;
  if (end == absl::InfiniteDuration()) return absl::FailedPreconditionError("Elapsed of an event before Wait");
  return end - begin;
}

absl::Status Device::Wait(const GpuEvent& event) {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Wait"));
  return RunQueued(static_cast<const Event&>(event).works);
}

absl::Status Device::Synchronize() {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Synchronize"));
  return RunQueued(queued_);
}

absl::StatusOr<std::unique_ptr<GpuGraph>> Device::Capture(const std::function<absl::Status()>& body) {
  LS_RETURN_IF_ERROR(CallOutsideOfCaptures("Capture"));
  auto graph = std::make_unique<Graph>();
  graph->body = body;
  recorded_ = graph.get();
  const absl::Cleanup end = [this] { recorded_ = nullptr; };
  LS_RETURN_IF_ERROR(body());
  return graph;
}

absl::Status Device::Replay(GpuGraph& graph) {
  if (queued_replays_++ == fault_replay_) FailAfter(0, replay_fault_);
  LS_RETURN_IF_ERROR(CallThatQueues());
  if (recorded_ != nullptr || running_ != nullptr) return absl::FailedPreconditionError("Replay within a capture");
  // A copy of the works, because each run has its own arguments.
  auto& captured = static_cast<Graph&>(graph);
  return Add({.name = "Replay", .run = [this, body = captured.body, works = captured.works]() mutable {
                ++replays_;
                return RunGraph(body, works);
              }});
}

absl::Status Device::RunGraph(const std::function<absl::Status()>& body, std::vector<Work>& works) {
  running_ = &works;
  reached_ = run_ = 0;
  // A GPU makes no tensors here: those of the capture are the graph's.
  const int64_t current = library_ == nullptr ? stream_ : library_->SetCurrent(stream_);
  const absl::Cleanup end = [this, current] {
    running_ = nullptr;
    hidden_.Open();
    if (library_ != nullptr) library_->SetCurrent(current);
  };
  hidden_.Close();
  LS_RETURN_IF_ERROR(body());
  if (reached_ != works.size()) {
    return absl::FailedPreconditionError(absl::StrCat("the body of a graph queues ", reached_, " works, and queued ",
                                                      works.size(), " when it was captured"));
  }
  return RunGraphUpTo(reached_);
}

absl::Status Device::RunGraphUpTo(size_t end) {
  hidden_.Open();
  const absl::Cleanup close = [this] { hidden_.Close(); };
  for (; run_ < end; ++run_) LS_RETURN_IF_ERROR(RunOne((*running_)[run_]));
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<EmulatedDevice> MakeEmulatedDevice(const EmulatedDeviceOptions& options) {
  return std::make_unique<Device>(options);
}

}  // namespace longshort::models
