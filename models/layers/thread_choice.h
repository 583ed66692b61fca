// How many threads a step is worth: all that a model may use, or one.
//
// The threads of a team wait for each other some hundred times in a step. A small step is faster without; and where
// other programs want the same CPUs, each wait may last a time slice of the system's, so that a team of two takes 50
// times as long as one thread would. Neither can be known beforehand, so it is learned, for each size of step, by
// trying: one thread where that takes some milliseconds at the most, or where the team has become so slow that one
// thread must be faster, or where it is given hardly more than one processor; then whatever was the worse again, more
// and more rarely while it stays so.
#pragma once

#include <array>
#include <cstdint>

namespace longshort::models {

// Thread: the one that runs the steps.
class ThreadChoice final {
 public:
  // REQUIRES: threads >= 1.
  explicit ThreadChoice(int threads) : threads_(threads) {}

  // Threads for a step of `work` units, at least 1: any unit in which time is roughly linear.
  int Next(int64_t work);
  // What that step took, and the processors' time that the whole process was given meanwhile. REQUIRES: Next(work) was
  // the last call.
  void Took(int64_t work, double seconds, double processor_seconds);

 private:
  // Steps whose work is between two powers of 2. Times are means of seconds for a unit of work; 0: not known yet.
  struct Size {
    double team = 0, alone = 0;
    double best_team = 0;
    double team_share = 1;     // of its processors' time that the team was given
    bool is_alone = false;     // one thread is better, as far as is known
    bool tries_other = false;  // the step that runs now does what is worse, as far as is known
    int64_t steps_to_trial = 0;
    int64_t trial_distance = 0;
  };

  Size& SizeOf(int64_t work);
  bool IsOneThreadWorthATrial(const Size& size, int64_t work) const;

  int threads_;
  std::array<Size, 64> sizes_;
};

}  // namespace longshort::models
