// What one batch has freed is kept for the next.
//
// The allocator (jemalloc) gives pages that it has not used for a while back to the system, and the next batch gets
// them again one by one, which takes up to as long as the batch itself. So while there are models, no page goes back
// until all of them rest, or one ends. The process then holds what its largest batches needed.
//
// The allocator is the process's: this holds for whatever it frees. Programs without jemalloc, as those with sanitizers
// are, keep nothing.
#pragma once

namespace longshort::models {

// A model's part in it: the first member of its weights and of each replica, so that it ends after all that these free.
//
// Thread: the one that runs the model; any may make and end it.
class KeptMemory final {
 public:
  KeptMemory();
  // Gives back what is free, though others work: the model's weights are among it. The last one leaves the allocator as
  // the first found it.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // The model works, until it rests. Cheap: before each batch.
  void Use();
  // Gives back what is free, if no other model works.
  void Rest();

 private:
  bool in_use_ = false;
};

}  // namespace longshort::models
