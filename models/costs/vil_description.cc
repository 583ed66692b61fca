#include "models/costs/vil_description.h"

#include "absl/strings/str_format.h"
#include "models/costs/vil_costs.h"

namespace longshort {

ModelDescription Describe(const VilConfig& config) {
  ModelDescription description;
  description.architecture = "vil";
  description.item = absl::StrFormat("one image of %d x %d pixels", config.image_size, config.image_size);
  for (const StageCost& cost : VilCosts(config)) {
    StageDescription stage;
    stage.cost = cost;
    if (const size_t index = description.stages.size(); index < config.stages.size()) {
      const int64_t side = config.GridSide(index);
      stage.tokens = config.stages[index].global_tokens + side * side;
      stage.width = config.stages[index].width;
    }
    description.stages.push_back(stage);
  }
  return description;
}

}  // namespace longshort
