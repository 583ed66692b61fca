// The models of the determinism test. They are small and have random weights. Together they cover all ways in which a
// result could depend on how it was computed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "models/model.h"
#include "tests/determinism/random_choice.h"

namespace longshort {

struct TestedLanguageModel {
  std::string name;
  models::LanguageModelWeights weights;  // for one thread; replicas may have more
};
std::vector<TestedLanguageModel> TestedLanguageModels();

struct TestedClassifier {
  std::string name;
  models::ClassifierWeights weights;
  std::function<models::ClassifierItem(Random&)> random_item;
};
std::vector<TestedClassifier> TestedClassifiers();

}  // namespace longshort
