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
  if (options.max_rows.has_value() && *options.max_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_rows is ", *options.max_rows, ", must be at least 1"));
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

StepPlanner::StepPlanner(const Options& options, int64_t chunk_size, const models::StepLimits& device)
    : options_(options),
      chunk_size_(chunk_size),
      max_rows_(options.max_rows.value_or(device.rows)),
      max_decoding_(std::min(max_rows_, device.logit_rows)),
      order_({.rounds = options.rounds}) {}

absl::Span<const int64_t> StepPlanner::Plan(absl::Span<const Candidate> candidates) {
  planned_ = {};
  planned_.pieces.assign(candidates.size(), 0);
  UpdateOrder(candidates);
  PlanDecoding(candidates, !indices_.empty());
  if (!indices_.empty()) PlanPrefill(candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const int64_t piece = planned_.pieces[i];
    planned_.ids.push_back(candidates[i].id);
    planned_.rows_of.push_back(candidates[i].decoding ? StepRows{.decoding = piece} : StepRows{.prefill = piece});
  }
  return planned_.pieces;
}

void StepPlanner::Shorten(size_t candidate, int64_t tokens) {
  StepRows& rows = planned_.rows_of[candidate];
  int64_t& of_candidate = rows.decoding > 0 ? rows.decoding : rows.prefill;
  (rows.decoding > 0 ? planned_.rows.decoding : planned_.rows.prefill) -= of_candidate - tokens;
  of_candidate = planned_.pieces[candidate] = tokens;
}

void StepPlanner::OnStep(const PlannedStep& step, absl::Duration time, bool failed) {
  if (!failed) cost_.Learn(step.rows, time);
  ChargePieces(step);
  shares_.assign(step.pieces.size(), absl::ZeroDuration());
  const int64_t participants =
      std::count_if(step.pieces.begin(), step.pieces.end(), [](int64_t piece) { return piece > 0; });
  for (size_t i = 0; i < step.pieces.size(); ++i) {
    if (step.pieces[i] == 0) continue;
    shares_[i] = time / participants;
    if (!cost_.known()) continue;
    const absl::Duration predicted = cost_.Of(step.rows_of[i]) - cost_.fixed() + cost_.fixed() / participants;
    shares_[i] = predicted * absl::FDivDuration(time, cost_.Of(step.rows));
  }
}

void StepPlanner::PlanDecoding(absl::Span<const Candidate> candidates, bool prefill_waits) {
  std::vector<size_t> decoding;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decoding && !candidates[i].in_other_step) decoding.push_back(i);
  }
  if (decoding.empty()) return;
  int64_t max_rows = max_decoding_;
  if (prefill_waits && max_rows > 1) max_rows -= std::max<int64_t>(1, max_rows / kKeptForPrefillDivisor);
  if (cost_.known()) {
    const double max_in_time = absl::FDivDuration(options_.target_step, cost_.decoding_row());
    max_rows = std::max<int64_t>(1, static_cast<int64_t>(std::min(max_in_time, static_cast<double>(max_rows))));
  }
  planned_.rows.decoding = std::min(max_rows, static_cast<int64_t>(decoding.size()));
  if (planned_.rows.decoding <
      static_cast<int64_t>(decoding.size())) {  // continue after the last one of the previous step
    const auto next =
        std::find_if(decoding.begin(), decoding.end(), [&](size_t i) { return candidates[i].id > last_decoded_; });
    std::rotate(decoding.begin(), next, decoding.end());
  }
  decoding.resize(planned_.rows.decoding);
  for (const size_t i : decoding) planned_.pieces[i] = 1;
  last_decoded_ = candidates[decoding.back()].id;
}

void StepPlanner::PlanPrefill(absl::Span<const Candidate> candidates) {
  const int64_t rows = PromptRowsBeside(planned_.rows.decoding);
  // Only whole chunks: a step too small for a chunk adds to the debt, and a later step pays it.
  const auto max_owed = static_cast<double>(std::max(max_rows_, chunk_size_));
  rows_owed_in_order_ = std::min(rows_owed_in_order_ + static_cast<double>(rows) / kInOrderDivisor, max_owed);
  PlanInOrder(candidates, std::min(rows, static_cast<int64_t>(rows_owed_in_order_) / chunk_size_ * chunk_size_));
  rows_owed_in_order_ -= static_cast<double>(planned_.rows.prefill);
  PlanShortestFirst(candidates, rows - planned_.rows.prefill);
}

int64_t StepPlanner::PromptRowsBeside(int64_t decoding) const {
  const int64_t max_rows = std::max<int64_t>(1, max_rows_ - decoding);
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
  } else if (planned_.rows.prefill > 0) {
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
    if (!candidate.in_other_step) indices_.emplace(handle, i);
  }
  for (const auto& [id, handle] : before) order_.Remove(handle);
}

void StepPlanner::PlanInOrder(absl::Span<const Candidate> candidates, int64_t rows) {
  while (planned_.rows.prefill < rows) {
    const auto first = order_.First([this](WorkOrder::Handle handle) {
      const auto index = indices_.find(handle);
      return index != indices_.end() && planned_.pieces[index->second] == 0;
    });
    if (!first.has_value()) return;
    const size_t i = indices_.at(*first);
    const int64_t read = Extend(candidates[i], planned_.pieces[i], rows - planned_.rows.prefill);
    if (read == 0) return;
    planned_.rows.prefill += read;
  }
}

void StepPlanner::PlanShortestFirst(absl::Span<const Candidate> candidates, int64_t rows) {
  std::vector<size_t> by_rest;
  by_rest.reserve(indices_.size());
  for (const auto& [handle, i] : indices_) by_rest.push_back(i);
  const auto rest = [&](size_t i) { return candidates[i].unread - planned_.pieces[i]; };
  std::stable_sort(by_rest.begin(), by_rest.end(), [&](size_t a, size_t b) { return rest(a) < rest(b); });
  for (const size_t i : by_rest) {
    const int64_t more = Extend(candidates[i], planned_.pieces[i], rows);
    planned_.rows.prefill += more;
    rows -= more;
  }
}

void StepPlanner::ChargePieces(const PlannedStep& step) {
  for (size_t i = 0; i < step.ids.size(); ++i) {
    const auto handle = handles_.find(step.ids[i]);
    if (step.rows_of[i].prefill == 0 || handle == handles_.end()) continue;
    WorkAttributes attributes = order_.Take(handle->second);
    order_.Complete(attributes, cost_.prefill_row() * step.pieces[i]);
    handle->second = order_.Add(std::move(attributes));
  }
}

}  // namespace longshort::core
