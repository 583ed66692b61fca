// at::parallel_for, for sources that are compiled with OpenMP: in others it is a plain loop, and says nothing.
#pragma once

#include "ATen/Parallel.h"

#if !defined(_OPENMP) && !defined(__clang__)
#error "this source needs OpenMP: name it in longshort_parallel_sources (cmake/LongshortDependencies.cmake)"
#endif
