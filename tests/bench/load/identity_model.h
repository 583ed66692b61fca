// Models that compute next to nothing, so that a server around them measures itself.
#pragma once

#include "models/classifier.h"
#include "models/families/load_model.h"

namespace longshort::load {

// A classifier of two classes, "even" and "odd": the parity of an item's first and last values. Of documents (a byte is
// a token), or of images (raw pixels only, taken as they are).
models::LoadedModel MakeIdentityModel(models::ClassifierInput input);

}  // namespace longshort::load
