#include "models/costs/cvt_description.h"

#include "absl/strings/str_format.h"
#include "models/costs/cvt_costs.h"

namespace longshort {

ModelDescription Describe(const CvtConfig& config) {
  int64_t rows = config.preprocessing.crop_height, columns = config.preprocessing.crop_width;
  ModelDescription description;
  description.architecture = "cvt";
  description.item = absl::StrFormat("one image of %d x %d pixels", columns, rows);
  for (const StageCost& cost : CvtCosts(config, rows, columns)) {
    StageDescription stage;
    stage.cost = cost;
    if (const size_t index = description.stages.size(); index < config.stages.size()) {
      rows = config.stages[index].EmbeddedLength(rows);
      columns = config.stages[index].EmbeddedLength(columns);
      stage.tokens = rows * columns;
      stage.width = config.stages[index].width;
    }
    description.stages.push_back(stage);
  }
  return description;
}

}  // namespace longshort
