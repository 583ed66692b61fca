// How a classifier is loaded.
#pragma once

namespace longshort {

struct ClassifierOptions {
  // Threads that loading and one batch use; 0 leaves LibTorch's own choice, one for each core.
  int threads = 0;
};

}  // namespace longshort
