// A model whose matrix products always have many rows. Differences in its results are not caused by the library.
#pragma once

#include "models/model.h"

namespace longshort {

// Reads, in each step beside the others' slices, a text of its own that takes at least kEnoughRows rows in each of the
// step's products: projections, finished chunks and logits. Its results are dropped.
models::LanguageModelWeights WithCompany(models::LanguageModelWeights weights);

}  // namespace longshort
