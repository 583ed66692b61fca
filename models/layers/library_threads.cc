#include "models/layers/library_threads.h"

#include <omp.h>

#include "ATen/Parallel.h"

namespace longshort {

int OwnThreads() {
  static const int threads = at::get_num_threads();
  return threads;
}

void UseThreads(int threads) {
  OwnThreads();
  thread_local int used = 0;
  if (threads == 0 || threads == used) return;
  at::set_num_threads(threads);
  used = threads;
}

void GiveBackThreads() { omp_pause_resource(omp_pause_soft, omp_get_initial_device()); }

OneThread::OneThread() : before_(at::get_num_threads()) {
  OwnThreads();
  at::set_num_threads(1);
}

OneThread::~OneThread() { at::set_num_threads(before_); }

}  // namespace longshort
