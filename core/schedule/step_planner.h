// What each sequence reads in the next step of the language model.
//
// Sequences that decode come first, a row each: their readers see every step. Prompts and documents share what is left
// of the step's time, in pieces that end with a chunk:
//
//   | decode decode decode | in order: one quarter | shortest rest first: three quarters |
//
// The first quarter goes by the order of all work (priority, client, due), so a long prompt gets on however many short
// ones come; steps too small for a chunk of it give it a chunk every few steps. The rest goes to the prompts that end
// soonest, so short ones do not wait for a long one.
//
// Thread: one worker's thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/step_cost.h"
#include "core/schedule/ticket.h"
#include "core/schedule/work_order.h"

namespace longshort::core {

class StepPlanner {
 public:
  struct Options {
    // Rows of one step. Bounds its time while nothing is known of it, and its logits: max_rows * V floats.
    int64_t max_rows = 512;
    // How long a step should take. Longer steps read prompts faster; whatever comes waits for the end of one.
    absl::Duration target_step = absl::Milliseconds(30);
    // How many times longer a step may take for the prompts that it reads than for decoding alone: what a long prompt
    // costs those who read along. Over 1.
    double max_slowdown = 2.5;
    // The least that prompts get beside decoding, as a fraction of its time; one chunk at the least. Over 0.
    double min_prefill = 0.25;
    PriorityRounds::Options rounds = {};
  };

  // A sequence that could be in the step.
  struct Candidate {
    // Of this sequence and no other, ever. Candidates are in the order of their ids.
    int64_t id = 0;
    // Must be valid during Plan.
    const Ticket* ticket = nullptr;
    // Whether it has one sampled token to read; else it has `unread` tokens from `position` on, at least one.
    bool decoding = false;
    int64_t position = 0;
    int64_t unread = 1;
    // Most of them that it may read in one step, at least 1.
    int64_t most = std::numeric_limits<int64_t>::max();
  };

  // REQUIRES: Check(options).ok(). `chunk_size` is C.
  StepPlanner(const Options& options, int64_t chunk_size);

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // How many tokens each candidate reads; 0 if it sits this step out. At least one is not 0, if there are candidates.
  // Valid until the next call.
  absl::Span<const int64_t> Plan(absl::Span<const Candidate> candidates);
  // A candidate reads fewer tokens than were planned.
  void Shorten(size_t candidate, int64_t tokens);
  // The step that was planned last took so long, or failed after so long: that says nothing of others, but it took a
  // worker's time.
  void OnStep(absl::Duration step, bool failed);
  // What of that time was for this candidate: its rows, and an even part of what is fixed.
  absl::Duration ShareOf(size_t candidate) const { return shares_[candidate]; }
  // How many rows of prompts a step has time for beside so many sequences that decode; at least 1.
  int64_t PromptRowsBeside(int64_t decoding) const;

  const StepCost& cost() const { return cost_; }

 private:
  void PlanDecoding(absl::Span<const Candidate> candidates, bool prefill_waits);
  void PlanPrefill(absl::Span<const Candidate> candidates);
  // Lets a candidate read `more` tokens, or as many of them as end with a chunk, or, as the first, any. Returns how
  // many.
  int64_t Extend(const Candidate& candidate, int64_t& piece, int64_t more) const;

  // Makes order_ hold the candidates that have prompts to read.
  void UpdateOrder(absl::Span<const Candidate> candidates);
  void PlanInOrder(absl::Span<const Candidate> candidates, int64_t rows);
  void PlanShortestFirst(absl::Span<const Candidate> candidates, int64_t rows);
  // Charges the pieces to their clients.
  void ChargePieces();

  const Options options_;
  const int64_t chunk_size_;
  StepCost cost_;
  double rows_owed_in_order_ = 0;
  int64_t last_decoded_ = -1;  // id; where the next step goes on if not all fit

  WorkOrder order_;                               // of prompts to read
  std::map<int64_t, WorkOrder::Handle> handles_;  // by id
  std::map<WorkOrder::Handle, size_t> indices_;   // of the candidates of this step

  StepRows rows_;
  std::vector<int64_t> pieces_;         // [candidates]
  std::vector<StepRows> rows_of_;       // [candidates]
  std::vector<absl::Duration> shares_;  // [candidates]
};

}  // namespace longshort::core
