// Keeps the memory that one batch, or step of a language model, has freed for the next.
//
// The allocator (jemalloc) returns unused pages to the system after a while. The next batch must then fault them in one
// by one, which can take as long as the batch itself. While any model works, this class therefore disables that return.
// Free pages go back when all models rest, or when one is destroyed. In between, the process holds what its largest
// batches needed.
//
// The setting applies to all memory of the process. Without jemalloc (for example, with sanitizers) this class has no
// effect.
#pragma once

namespace longshort::models {

// Held by a model: the first member of its weights and of each replica, so that it is destroyed after all the memory
// that they free.
//
// Thread: the one that runs the model; any thread may create and destroy it.
class KeptMemory final {
 public:
  KeptMemory();
  // Returns free memory to the system even if other models work, because it includes this model's weights. The last
  // destructor restores the allocator's original settings.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // Marks the model as working until Rest. Cheap enough to call before each batch.
  void Use();
  // Returns free memory to the system if no other model works.
  void Rest();

 private:
  bool in_use_ = false;
};

}  // namespace longshort::models
