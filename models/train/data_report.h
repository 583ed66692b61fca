// What a run prints of its data before it starts.
#pragma once

#include <string>

#include "models/train/labelled_data.h"

namespace longshort::models {

// In lines: the numbers of examples, of classes, and of examples of each class or the numbers' range; the baseline on
// the held-out examples; the notes.
std::string DataReport(const DataDescription& description);

}  // namespace longshort::models
