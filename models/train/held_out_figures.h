// What a run prints of its data, and how good a model's answers for the held-out examples are, beside a baseline that
// ignores the input.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

// By problem:
//   one label       accuracy; the baseline is the largest class of the training data
//   several labels  micro-F1 and exact match with a threshold of 0.5; the baselines are the set of labels with the best
//                   micro-F1, and the most frequent set, of the training data
//   regression      mean squared error and R2; the baseline is the mean of the training data
class HeldOutFigures {
 public:
  virtual ~HeldOutFigures() = default;

  // Adds examples: logits and targets [examples, classes], as TargetRows. Those of a regression are scaled by ScaleOf
  // the training data.
  virtual void Add(const at::Tensor& logits, const at::Tensor& targets) = 0;
  // In one line: "accuracy 0.9000 (9 of 10), always 'pos' 0.6000, loss 0.3000 nats". `loss` is the mean.
  virtual std::string Figures(double loss) const = 0;
  // The first of the figures as a score: higher is better.
  virtual double Score() const = 0;
  // In lines: the labels of the most errors; "" if there are none.
  virtual std::string WorstLabels() const { return ""; }
  // In one line: what the baseline is, and its figures.
  virtual std::string Baseline() const = 0;
};

// Figures of the description's held-out examples. `description` must outlive the result.
std::unique_ptr<HeldOutFigures> MakeHeldOutFigures(const DataDescription& description);

// In lines: the numbers of examples, of classes, and of examples of each class or the numbers' range; the baseline on
// the held-out examples; the notes.
std::string DataReport(const DataDescription& description);

// One row for each target, [targets, classes], float32: 1 for each of its classes and 0 elsewhere, or its number.
at::Tensor TargetRows(absl::Span<const Target> targets, ProblemType problem, int64_t classes);

}  // namespace longshort::models
