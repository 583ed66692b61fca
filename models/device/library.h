// How this process uses LibTorch: its threads, the number of them for each step, its errors, and its memory between
// two batches.
//
// Each thread that makes LibTorch use several threads gets a team of its own, which stays alive. A team spins between
// two pieces of work as long as all teams, idle ones included, have at most one thread per CPU. With more threads, a
// team sleeps after each piece of work, and a small step takes far longer. Therefore only threads that run models
// should have a team, and only while they run one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace longshort::models {

// Makes LibTorch use this many threads for later calls of the calling thread. If the system cannot create them, the
// team keeps its size: the library would abort the process otherwise. Cheap when nothing changes: a model calls it
// before each step, because a new thread may run it. REQUIRES: threads >= 1.
void UseThreads(int threads);

// Whether the system can create this many threads at once.
bool CanMakeThreads(int threads);

// LibTorch's default number of threads.
int OwnThreads();

// Ends the calling thread's team, if it has one. The next piece of work creates a new one, at about 10 us per thread.
void ReleaseThreads();

// Makes LibTorch run calls of this thread without other threads while the object lives. For loading and training.
class OneThread final {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// "LibTorch failed <doing>: <what it said>", without the stack trace that LibTorch adds: clients see this text.
// RESOURCE_EXHAUSTED if there was no memory, else INTERNAL.
absl::Status LibraryError(std::string_view doing, const std::exception& error);

// --- memory ---
//
// Keeps the memory that one batch, or step of a language model, has freed for the next.
//
// The allocator (jemalloc) returns unused pages to the system after a while. The next batch must then fault them in one
// by one, which can take as long as the batch itself. While any model works, this class therefore disables that return.
// Free pages go back when all models rest, or when one is destroyed. In between, the process holds what its largest
// batches needed.
//
// The setting applies to all memory of the process. Without jemalloc (for example, with sanitizers) this class has no
// effect.

// Held by a model: the first member of its weights and of each replica, so that it is destroyed after all the memory
// that they free.
//
// Thread: the one that runs the model; any thread may create and destroy it.
class KeptMemory final {
 public:
  KeptMemory();
  // Returns free memory to the system even if other models work, because it includes this model's weights. The last
  // destructor restores the allocator's original settings.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // Marks the model as working until Rest. Cheap enough to call before each batch.
  void Use();
  // Returns free memory to the system if no other model works.
  void Rest();

 private:
  bool in_use_ = false;
};

// Chooses the number of threads of a step: the whole team of the model, or one thread.
//
// The threads of a team wait for each other some hundred times in a step. A small step is faster with one thread. If
// other programs use the same CPUs, each wait may last a scheduler time slice, and a team of two can take 50 times as
// long as one thread. Neither can be predicted, so the class measures both for each size of step. It tries one thread
// if that takes at most some milliseconds, if the team has become so slow that one thread must be faster, or if the
// team gets hardly more than one CPU. It then retries the slower choice at growing intervals, which are longer the
// slower it is. It compares medians of the last steps, so a step that something else delays changes nothing.
//
// Thread: the one that runs the steps.
class ThreadChoice final {
 public:
  // REQUIRES: threads >= 1.
  explicit ThreadChoice(int threads) : threads_(threads) {}

  // Returns the number of threads for a step of `work` >= 1 units. The unit must be roughly proportional to time.
  int Next(int64_t work);
  // Records the wall time of that step, and the CPU time that the whole process got meanwhile. REQUIRES: Next(work) was
  // the last call.
  void Record(int64_t work, double seconds, double processor_seconds);

 private:
  // The last steps of a choice, in seconds per unit of work.
  class Times {
   public:
    // `step`: its number among all steps of this size. Times that are much older are forgotten: they are of another
    // state of the machine.
    void Add(double seconds, int64_t step);
    // 0: there are none. Of an even number, the lower of the two in the middle, because delays only lengthen a step.
    double Median() const;

   private:
    static constexpr int64_t kSteps = 5;
    std::array<double, kSteps> last_{};
    int64_t count_ = 0;  // since older times were forgotten
    int64_t last_step_ = 0;
  };

  // Steps whose work is between two powers of 2.
  struct Size {
    Times team, alone;
    int64_t steps = 0;
    double best_team = 0;      // seconds per unit of work
    double team_share = 1;     // fraction of its CPUs' time that the team got
    bool is_alone = false;     // one thread is currently believed faster
    bool tries_other = false;  // the current step uses the choice that is believed slower
    int64_t steps_to_trial = 0;
    int64_t trial_distance = 0;
  };

  Size& SizeOf(int64_t work);
  bool IsOneThreadWorthATrial(const Size& size, int64_t work) const;

  int threads_;
  std::array<Size, 64> sizes_;
};

// Runs the steps of a model, each on the number of threads that is fastest. Thread: the one that runs the steps.
class TimedSteps final {
 public:
  // `threads`: maximum for a step; 0: LibTorch's default.
  explicit TimedSteps(int threads) : choice_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `step`, which has `work` units (ThreadChoice::Next). Returns its result, and throws what it throws.
  template <typename Step>
  auto Run(int64_t work, const Step& step) {
    Begin(work);
    auto result = step();
    End();
    return result;
  }

  // The same in two calls. Do not call End for a step that failed.
  void Begin(int64_t work) {
    work_ = work;
    UseThreads(choice_.Next(work));
    begin_ = std::chrono::steady_clock::now();
    processors_begin_ = std::clock();
  }
  void End() {
    choice_.Record(work_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(),
                   static_cast<double>(std::clock() - processors_begin_) / CLOCKS_PER_SEC);
  }

 private:
  ThreadChoice choice_;
  // The current step:
  int64_t work_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::clock_t processors_begin_ = 0;
};

}  // namespace longshort::models
