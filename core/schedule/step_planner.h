// What a step of the language model reads: StepPlanner divides it among the running sequences, and PromptsAhead decides
// whether one more prompt should start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/estimators.h"
#include "core/schedule/work_attributes.h"
#include "core/schedule/work_order.h"
#include "models/model.h"

namespace longshort::core {

// Plans which tokens each sequence reads in the next step of the language model.
//
// Sequences that decode come first, with one row each, because their readers see every step. Prompts and documents
// share the remaining time of the step, in pieces that end with a chunk:
//
//   | decode decode decode | in order: one quarter | shortest rest first: three quarters |
//
// The first quarter follows the order of all work (priority, client, due time), so a long prompt advances however many
// short ones arrive. If a step is too small for a chunk of it, it gets a chunk every few steps. The other three
// quarters serve the prompts with the least left to read, so short prompts do not wait for a long one.
//
// Thread: one worker's thread.
class StepPlanner {
 public:
  struct Options {
    // Rows of one step: limits its time before step costs are known. nullopt: those of the device
    // (models::StepLimits).
    std::optional<int64_t> max_rows = std::nullopt;
    // How long a step should take. Longer steps read prompts faster, but new requests wait for the end of a step.
    absl::Duration target_step = absl::Milliseconds(30);
    // How many times longer a step with prompts may take than a step that only decodes: how much a long prompt slows
    // down streams that decode. Over 1.
    double max_slowdown = 2.5;
    // The minimum time of prompts in a step, as a fraction of its decoding time; at least one chunk. Over 0.
    double min_prefill = 0.25;
    PriorityRounds::Options rounds = {};
  };

  // A sequence that may take part in the step.
  struct Candidate {
    // Unique, never used again. Candidates are sorted by id.
    int64_t id = 0;
    // Must be valid during Plan.
    const WorkAttributes* attributes = nullptr;
    // Whether it reads one sampled token. Otherwise it has `unread` tokens starting at `position`, at least one.
    bool decoding = false;
    int64_t position = 0;
    int64_t unread = 1;
    // The maximum number of them in one step, at least 1.
    int64_t max_tokens = std::numeric_limits<int64_t>::max();
    // Whether a step that runs now reads it: then this step does not.
    bool in_other_step = false;
  };

  // A planned step, by candidate.
  struct PlannedStep {
    std::vector<int64_t> ids;
    std::vector<int64_t> pieces;    // tokens
    std::vector<StepRows> rows_of;  // the same, by kind
    StepRows rows;                  // in all
  };

  // REQUIRES: Check(options).ok(). `chunk_size` is C.
  StepPlanner(const Options& options, int64_t chunk_size, const models::StepLimits& device = {});

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // How many tokens each candidate reads; 0 if it skips this step. At least one is not 0, if there are candidates that
  // no other step reads. Valid until the next call.
  absl::Span<const int64_t> Plan(absl::Span<const Candidate> candidates);
  // Reduces the planned number of tokens of a candidate.
  void Shorten(size_t candidate, int64_t tokens);
  // The step that Plan returned last.
  const PlannedStep& planned() const { return planned_; }
  // A planned step took `time`, or failed after it. A failed step does not count for predictions, but its time is
  // charged.
  void OnStep(const PlannedStep& step, absl::Duration time, bool failed);
  // The candidate's share of that time: the cost of its rows, and an equal part of the fixed cost.
  absl::Duration ShareOf(size_t candidate) const { return shares_[candidate]; }
  // How many prompt rows fit in a step with this many decoding sequences; at least 1.
  int64_t PromptRowsBeside(int64_t decoding) const;

  const StepCost& cost() const { return cost_; }

 private:
  void PlanDecoding(absl::Span<const Candidate> candidates, bool prefill_waits);
  void PlanPrefill(absl::Span<const Candidate> candidates);
  // Extends a candidate's piece by up to `more` tokens, so that it ends with a chunk or with the prompt. If it cannot
  // reach the end of a chunk, it is extended only as the first piece of the step. Returns the number of tokens added.
  int64_t Extend(const Candidate& candidate, int64_t& piece, int64_t more) const;

  // Makes order_ contain the candidates with unread prompts.
  void UpdateOrder(absl::Span<const Candidate> candidates);
  void PlanInOrder(absl::Span<const Candidate> candidates, int64_t rows);
  void PlanShortestFirst(absl::Span<const Candidate> candidates, int64_t rows);
  // Charges the pieces to their clients.
  void ChargePieces(const PlannedStep& step);

  const Options options_;
  const int64_t chunk_size_;
  const int64_t max_rows_, max_decoding_;
  StepCost cost_;
  double rows_owed_in_order_ = 0;
  int64_t last_decoded_ = -1;  // id; where the next step goes on if not all fit

  WorkOrder order_;                               // of prompts to read
  std::map<int64_t, WorkOrder::Handle> handles_;  // by id
  std::map<WorkOrder::Handle, size_t> indices_;   // of the candidates of this step

  PlannedStep planned_;
  std::vector<absl::Duration> shares_;  // [candidates of the last step that ended]
};

// Decides whether to start one more prompt: whether it would be read soon, or only wait behind the running prompts.
//
// A request that cannot be read yet should stay in the queue: there its priority, client and deadline count, it can be
// refused in time, and the queue's limits bound its wait. So a prompt is started when the next step has time for some
// of it. The planner serves prompts with less left to read first. Prompts do not wait for a long prompt, and not even
// a longer one does, because it would keep all requests behind it in the queue.
//
// A step advances only one or two of several long prompts, but all of them hold their streams and cache pages. So a
// long prompt is started only while the running long prompts of its client, and of its priority or a higher one, take
// less than the client's share of half of the streams. Otherwise it waits, and the requests behind it pass. It does not
// wait forever, because part of every step serves the first prompt in order. Prompts of other clients or of a lower
// priority never hold it back.
class PromptsAhead {
 public:
  // A prompt is long if it takes more steps than this.
  static constexpr int64_t kLongSteps = 16;

  // A running prompt, in tokens.
  struct Prompt {
    int64_t all = 0;   // unread when it was started
    int64_t rest = 0;  // still unread
    Priority priority = Priority::kNormal;
    std::string_view client = {};  // must be valid while this is used
  };

  // `rows`: the number of prompt rows that the next step has time for, at least 1.
  PromptsAhead(std::vector<Prompt> prompts, int64_t rows) : prompts_(std::move(prompts)), rows_(rows) {}

  // How many long prompts of a client, of a priority and those above it, may be read at once, given the number of
  // streams and of clients with requests.
  static int64_t MaxLong(int64_t streams, int64_t clients) {
    return std::max<int64_t>(1, streams / 2 / std::max<int64_t>(1, clients));
  }

  // Whether a prompt with this many unread tokens is long.
  bool IsLong(int64_t unread) const { return unread > kLongSteps * rows_; }
  // How many of the client's running prompts of this priority and those above it were long when they started.
  int64_t LongPrompts(std::string_view client, Priority lowest) const {
    return std::count_if(prompts_.begin(), prompts_.end(), [&](const Prompt& prompt) {
      return prompt.client == client && prompt.priority >= lowest && IsLong(prompt.all);
    });
  }

  // Whether the running prompts leave some of the next step to a prompt with this many unread tokens. True if there are
  // none.
  bool LeaveRoomFor(int64_t unread) const {
    const int64_t longest_before = std::min(unread, kLongSteps * rows_);
    int64_t before = 0;
    for (const Prompt& prompt : prompts_) before += prompt.rest <= longest_before ? prompt.rest : 0;
    return before < rows_;
  }

 private:
  std::vector<Prompt> prompts_;
  int64_t rows_;
};

}  // namespace longshort::core
