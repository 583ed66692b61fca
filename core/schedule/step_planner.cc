#include "core/schedule/step_planner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort::core {
namespace {

// The fraction of the prompts' rows that follows the order of all work.
constexpr int64_t kInOrderDivisor = 4;
// The fraction of a step that is kept for prompts, however many sequences decode.
constexpr int64_t kKeptForPrefillDivisor = 8;

}  // namespace

absl::Status StepPlanner::Check(const Options& options) {
  if (options.max_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_rows is ", options.max_rows, ", must be at least 1"));
  }
  if (options.target_step <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("target_step must be positive");
  }
  if (!(options.max_slowdown > 1)) {
    return absl::InvalidArgumentError(absl::StrCat("max_slowdown is ", options.max_slowdown, ", must be over 1"));
  }
  if (!(options.min_prefill > 0 && options.min_prefill <= options.max_slowdown - 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_prefill is ", options.min_prefill, ", must be over 0 and at most max_slowdown - 1"));
  }
  return PriorityRounds::Check(options.rounds);
}

StepPlanner::StepPlanner(const Options& options, int64_t chunk_size)
    : options_(options), chunk_size_(chunk_size), order_({.rounds = options.rounds}) {}

absl::Span<const int64_t> StepPlanner::Plan(absl::Span<const Candidate> candidates) {
  pieces_.assign(candidates.size(), 0);
  rows_ = StepRows();
  UpdateOrder(candidates);
  PlanDecoding(candidates, !handles_.empty());
  if (!handles_.empty()) PlanPrefill(candidates);
  rows_of_.clear();
  for (size_t i = 0; i < candidates.size(); ++i) {
    rows_of_.push_back(candidates[i].decoding ? StepRows{.decoding = pieces_[i]} : StepRows{.prefill = pieces_[i]});
  }
  return pieces_;
}

void StepPlanner::Shorten(size_t candidate, int64_t tokens) {
  StepRows& rows = rows_of_[candidate];
  int64_t& of_candidate = rows.decoding > 0 ? rows.decoding : rows.prefill;
  (rows.decoding > 0 ? rows_.decoding : rows_.prefill) -= of_candidate - tokens;
  of_candidate = pieces_[candidate] = tokens;
}

void StepPlanner::OnStep(absl::Duration step, bool failed) {
  if (!failed) cost_.Learn(rows_, step);
  ChargePieces();
  shares_.assign(pieces_.size(), absl::ZeroDuration());
  const int64_t participants = std::count_if(pieces_.begin(), pieces_.end(), [](int64_t piece) { return piece > 0; });
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i] == 0) continue;
    shares_[i] = step / participants;
    if (!cost_.known()) continue;
    const absl::Duration predicted = cost_.Of(rows_of_[i]) - cost_.fixed() + cost_.fixed() / participants;
    shares_[i] = predicted * absl::FDivDuration(step, cost_.Of(rows_));
  }
}

void StepPlanner::PlanDecoding(absl::Span<const Candidate> candidates, bool prefill_waits) {
  std::vector<size_t> decoding;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decoding) decoding.push_back(i);
  }
  if (decoding.empty()) return;
  int64_t max_rows = options_.max_rows;
  if (prefill_waits && max_rows > 1) max_rows -= std::max<int64_t>(1, max_rows / kKeptForPrefillDivisor);
  if (cost_.known()) {
    const double max_in_time = absl::FDivDuration(options_.target_step, cost_.decoding_row());
    max_rows = std::max<int64_t>(1, static_cast<int64_t>(std::min(max_in_time, static_cast<double>(max_rows))));
  }
  rows_.decoding = std::min(max_rows, static_cast<int64_t>(decoding.size()));
  if (rows_.decoding < static_cast<int64_t>(decoding.size())) {  // continue after the last one of the previous step
    const auto next =
        std::find_if(decoding.begin(), decoding.end(), [&](size_t i) { return candidates[i].id > last_decoded_; });
    std::rotate(decoding.begin(), next, decoding.end());
  }
  decoding.resize(rows_.decoding);
  for (const size_t i : decoding) pieces_[i] = 1;
  last_decoded_ = candidates[decoding.back()].id;
}

void StepPlanner::PlanPrefill(absl::Span<const Candidate> candidates) {
  const int64_t rows = PromptRowsBeside(rows_.decoding);
  // Only whole chunks: a step too small for a chunk adds to the debt, and a later step pays it.
  const auto max_owed = static_cast<double>(std::max(options_.max_rows, chunk_size_));
  rows_owed_in_order_ = std::min(rows_owed_in_order_ + static_cast<double>(rows) / kInOrderDivisor, max_owed);
  PlanInOrder(candidates, std::min(rows, static_cast<int64_t>(rows_owed_in_order_) / chunk_size_ * chunk_size_));
  rows_owed_in_order_ -= static_cast<double>(rows_.prefill);
  PlanShortestFirst(candidates, rows - rows_.prefill);
}

int64_t StepPlanner::PromptRowsBeside(int64_t decoding) const {
  const int64_t max_rows = std::max<int64_t>(1, options_.max_rows - decoding);
  if (!cost_.known()) return max_rows;
  const absl::Duration without = cost_.Of({.decoding = decoding});
  const absl::Duration longest =
      decoding > 0
          ? std::clamp(options_.target_step, without * (1 + options_.min_prefill), without * options_.max_slowdown)
          : std::max(options_.target_step, without * 2);  // the rows take at least as long as the weights
  const double in_time = absl::FDivDuration(longest - without, cost_.prefill_row());
  return std::min(max_rows,
                  std::max(chunk_size_, static_cast<int64_t>(std::min(in_time, static_cast<double>(max_rows)))));
}

int64_t StepPlanner::Extend(const Candidate& candidate, int64_t& piece, int64_t more) const {
  const int64_t before = piece;
  const int64_t all = std::min(candidate.unread, candidate.max_tokens);
  piece = std::min(all, before + more);
  if (piece == all) return piece - before;
  const int64_t chunk_end = (candidate.position + piece) / chunk_size_ * chunk_size_ - candidate.position;
  const bool in_first_chunk = chunk_end <= 0;
  if (!in_first_chunk) {
    piece = std::max(before, chunk_end);
  } else if (rows_.prefill > 0) {
    piece = before;
  }
  return piece - before;
}

void StepPlanner::UpdateOrder(absl::Span<const Candidate> candidates) {
  std::map<int64_t, WorkOrder::Handle> before = std::move(handles_);
  handles_.clear();
  indices_.clear();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.decoding) continue;
    auto known = before.extract(candidate.id);
    WorkOrder::Handle handle = 0;
    if (known.empty()) {
      WorkAttributes attributes = *candidate.attributes;
      attributes.cost = absl::ZeroDuration();  // each piece is charged separately
      handle = order_.Add(std::move(attributes));
    } else {
      handle = known.mapped();
    }
    handles_.emplace(candidate.id, handle);
    indices_.emplace(handle, i);
  }
  for (const auto& [id, handle] : before) order_.Remove(handle);
}

void StepPlanner::PlanInOrder(absl::Span<const Candidate> candidates, int64_t rows) {
  while (rows_.prefill < rows) {
    const auto first = order_.First([this](WorkOrder::Handle handle) { return pieces_[indices_.at(handle)] == 0; });
    if (!first.has_value()) return;
    const size_t i = indices_.at(*first);
    const int64_t read = Extend(candidates[i], pieces_[i], rows - rows_.prefill);
    if (read == 0) return;
    rows_.prefill += read;
  }
}

void StepPlanner::PlanShortestFirst(absl::Span<const Candidate> candidates, int64_t rows) {
  std::vector<size_t> by_rest;
  by_rest.reserve(indices_.size());
  for (const auto& [handle, i] : indices_) by_rest.push_back(i);
  const auto rest = [&](size_t i) { return candidates[i].unread - pieces_[i]; };
  std::stable_sort(by_rest.begin(), by_rest.end(), [&](size_t a, size_t b) { return rest(a) < rest(b); });
  for (const size_t i : by_rest) {
    const int64_t more = Extend(candidates[i], pieces_[i], rows);
    rows_.prefill += more;
    rows -= more;
  }
}

void StepPlanner::ChargePieces() {
  for (auto& [id, handle] : handles_) {
    const size_t i = indices_.at(handle);
    if (pieces_[i] == 0) continue;
    WorkAttributes attributes = order_.Take(handle);
    order_.Complete(attributes, cost_.prefill_row() * pieces_[i]);
    handle = order_.Add(std::move(attributes));
  }
}

}  // namespace longshort::core
