#include "models/train/divided_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longshort::models {
namespace {

// The indices of equal examples, by the hash of their content.
using Different = std::map<std::string, std::vector<size_t>>;

absl::StatusOr<Different> AllDifferent(absl::Span<const LabelledExample> examples) {
  Different different;
  for (size_t i = 0; i < examples.size(); ++i) {
    std::string hashes;
    for (const std::string& part : examples[i].content) {
      LS_ASSIGN_OR_RETURN(const std::string hash, Sha256Of(part));
      hashes += hash;
    }
    different[hashes].push_back(i);
  }
  return different;
}

std::map<std::string, Different> ByLabel(const Different& all, absl::Span<const LabelledExample> examples) {
  std::map<std::string, Different> classes;
  for (const auto& [hash, indices] : all) {
    for (const size_t i : indices) {
      for (const std::string& label : examples[i].labels) classes[label][hash].push_back(i);
    }
  }
  return classes;
}

// The labels of fewer than `fewest` different examples, with their number.
std::vector<std::pair<std::string, size_t>> Rare(const std::map<std::string, Different>& classes, int64_t fewest) {
  std::vector<std::pair<std::string, size_t>> rare;
  for (const auto& [label, different] : classes) {
    if (std::ssize(different) < fewest) rare.emplace_back(label, different.size());
  }
  return rare;
}

// "'a' (1), 'b' (2) and 40 more"
std::string WithNumbers(const std::vector<std::pair<std::string, size_t>>& labels) {
  std::vector<std::string> parts;
  parts.reserve(labels.size());
  for (const auto& [label, number] : labels) parts.push_back(absl::StrCat(QuotedLabel(label), " (", number, ")"));
  return Listed(std::move(parts));
}

absl::Status CheckNotRare(const std::map<std::string, Different>& classes, const std::string& name) {
  const auto rare = Rare(classes, 2);
  if (rare.empty()) return absl::OkStatus();
  const bool all_numbers = std::all_of(rare.begin(), rare.end(), [](const auto& one) {
    double number;
    return absl::SimpleAtod(one.first, &number);
  });
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": ", rare.size(), " of ", classes.size(),
      " labels have only 1 different example, but one to train on and one to hold out are needed: ", WithNumbers(rare),
      "; add examples, leave these labels out with --min-examples=2, or give other data to evaluate on with --held-out",
      all_numbers ? "; if the labels are quantities, give --problem=regression" : ""));
}

absl::Status LeaveOutRare(const Division& division, DividedData& data) {
  if (division.min_examples <= 1) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const Different different, AllDifferent(data.train));
  const auto rare = Rare(ByLabel(different, data.train), division.min_examples);
  if (rare.empty()) return absl::OkStatus();
  const std::map<std::string, size_t> labels(rare.begin(), rare.end());
  const size_t before = data.train.size();
  for (std::vector<LabelledExample>* part : {&data.train, &data.held_out}) {
    for (LabelledExample& example : *part) {
      std::erase_if(example.labels, [&](const std::string& label) { return labels.contains(label); });
    }
    if (division.problem == ProblemType::kMultiLabel) continue;
    std::erase_if(*part, [](const LabelledExample& example) { return example.labels.empty(); });
  }
  data.description.notes.push_back(absl::StrCat("--min-examples=", division.min_examples, " leaves out ", rare.size(),
                                                " labels and ", before - data.train.size(),
                                                " examples: ", WithNumbers(rare), "."));
  return absl::OkStatus();
}

void NoteConflicts(const Different& different, absl::Span<const LabelledExample> examples,
                   std::vector<std::string>& notes) {
  const auto shown = [&](size_t i) {
    return absl::StrCat(examples[i].place, " (", QuotedLabels(examples[i].labels), ")");
  };
  int64_t conflicts = 0;
  std::string first;
  for (const auto& [hash, indices] : different) {
    const std::vector<std::string>& labels = examples[indices.front()].labels;
    const auto other =
        std::find_if(indices.begin(), indices.end(), [&](size_t i) { return examples[i].labels != labels; });
    if (other == indices.end()) continue;
    if (conflicts++ == 0) first = absl::StrCat(shown(indices.front()), " and ", shown(*other));
  }
  if (conflicts == 0) return;
  notes.push_back(absl::StrCat("Equal examples with different labels: ", conflicts, ", for example ", first, "."));
}

// They make the held-out figures better than those of new examples.
absl::Status NoteOverlap(DividedData& data) {
  LS_ASSIGN_OR_RETURN(const Different train, AllDifferent(data.train));
  LS_ASSIGN_OR_RETURN(const Different held_out, AllDifferent(data.held_out));
  size_t equal = 0;
  for (const auto& [hash, indices] : held_out) equal += train.contains(hash) ? indices.size() : 0;
  if (equal > 0) {
    data.description.notes.push_back(
        absl::StrCat("Held-out examples that are also in the training data: ", equal, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckSetsDiffer(absl::Span<const LabelledExample> examples, const std::string& name) {
  const std::vector<std::string>& first = examples.front().labels;
  if (std::any_of(examples.begin(), examples.end(), [&](const auto& example) { return example.labels != first; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": all examples have the same labels (", QuotedLabels(first), "); at least two must differ"));
}

// Marks about `fraction` of the different examples, at least one.
void Mark(const Different& different, double fraction, std::vector<bool>& is_held_out) {
  const auto wanted = static_cast<size_t>(static_cast<double>(different.size()) * fraction);
  size_t left = std::clamp<size_t>(wanted, 1, different.size() - 1);
  for (const auto& [hash, indices] : different) {
    if (left == 0) break;
    for (const size_t i : indices) is_held_out[i] = true;
    --left;
  }
}

// Moves a fraction of `data.train` to `part`.
absl::Status HoldOut(const Division& division, double fraction, const std::string& name,
                     std::vector<LabelledExample>& part, DividedData& data) {
  LS_ASSIGN_OR_RETURN(const Different different, AllDifferent(data.train));
  std::vector<bool> is_held_out(data.train.size());
  std::map<std::string, Different> classes;
  if (division.problem != ProblemType::kRegression) {
    classes = ByLabel(different, data.train);
    LS_RETURN_IF_ERROR(CheckNotRare(classes, name));
  }
  if (different.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has only 1 different example; at least 2 are needed to hold one out"));
  }
  if (division.problem == ProblemType::kSingleLabel) {
    for (const auto& [label, of_label] : classes) Mark(of_label, fraction, is_held_out);
  } else {
    Mark(different, fraction, is_held_out);
  }
  size_t kept = 0;
  for (size_t i = 0; i < data.train.size(); ++i) {
    if (is_held_out[i]) {
      part.push_back(std::move(data.train[i]));
    } else {
      std::swap(data.train[kept++], data.train[i]);
    }
  }
  data.train.resize(kept);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DividedData> Divide(std::vector<LabelledExample> train, std::vector<LabelledExample> held_out,
                                   const Division& division, const std::string& name) {
  DividedData data{.train = std::move(train), .held_out = std::move(held_out), .validation = {}, .description = {}};
  DataDescription& description = data.description;
  description.problem = division.problem;
  const bool is_divided = !data.held_out.empty();
  if (division.problem == ProblemType::kMultiLabel) LS_RETURN_IF_ERROR(CheckSetsDiffer(data.train, name));
  if (division.problem != ProblemType::kRegression) {
    LS_RETURN_IF_ERROR(LeaveOutRare(division, data));
    std::set<std::string> labels;
    for (const LabelledExample& example : data.train) labels.insert(example.labels.begin(), example.labels.end());
    description.labels = {labels.begin(), labels.end()};
    LS_RETURN_IF_ERROR(CheckLabelsDiffer(description.labels, division.problem, name));
  }
  LS_ASSIGN_OR_RETURN(const Different different, AllDifferent(data.train));
  NoteConflicts(different, data.train, description.notes);
  if (!is_divided) {
    LS_RETURN_IF_ERROR(HoldOut(division, division.held_out_fraction, name, data.held_out, data));
  }
  if (division.validation_fraction > 0) {
    LS_RETURN_IF_ERROR(HoldOut(division, division.validation_fraction, name, data.validation, data));
  }
  if (data.held_out.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-examples=", division.min_examples, " leaves no example in the data of --held-out"));
  }
  LS_RETURN_IF_ERROR(NoteOverlap(data));
  LS_ASSIGN_OR_RETURN(description.train, TargetsOf(data.train, description.labels, division.problem));
  LS_ASSIGN_OR_RETURN(description.held_out, TargetsOf(data.held_out, description.labels, division.problem));
  LS_ASSIGN_OR_RETURN(description.validation, TargetsOf(data.validation, description.labels, division.problem));
  return data;
}

}  // namespace longshort::models
