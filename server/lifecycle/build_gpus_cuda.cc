#include "models/loading/cuda_backends.h"
#include "server/lifecycle/build_gpus.h"

namespace longshort {

BuildGpus GpusOfThisBuild() {
  BuildGpus build;
  build.gpus.find = [] { return FindCudaGpus(); };
  build.backends = MakeCudaBackends(build.gpus.loss);
  return build;
}

}  // namespace longshort
