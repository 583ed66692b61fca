#include "core/classification/item_preparer.h"

#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {

void ItemPreparer::Submit(int64_t tasks) {
  for (; tasks > 0; --tasks) pool_->Submit({.client = owner_}, [this] { return PrepareNext(); });
}

absl::Duration ItemPreparer::PrepareNext() {
  absl::Duration preparation;
  if (std::unique_ptr<ClassificationJob> job = items_.BeginPreparation(); job != nullptr) {
    const absl::Time begin = clock_.Now();
    const absl::Status status = items_.ends_now() ? ServerIsStopping() : Prepare(*job);
    preparation = clock_.Now() - begin;
    if (status.ok()) {
      items_.AddPrepared(std::move(job), preparation);
    } else {
      items_.RemoveUnprepared(*job, preparation);
      FailItem(*job, status, observer_);
    }
  }
  // If no preparation was reserved, the queue may be over and this object destroyed.
  if (const int64_t more = items_.EndPreparation(); more > 0) Submit(more);
  return preparation;
}

absl::Status ItemPreparer::Prepare(ClassificationJob& job) {
  const absl::Time begin = clock_.Now();
  LS_RETURN_IF_ERROR(job.CheckNotAbandoned(begin));
  absl::Status status = job.Prepare();
  const absl::Time end = clock_.Now();
  job.SetPrepared(end);
  observer_.OnPrepared(end - begin);
  LS_RETURN_IF_ERROR(status);
  // A worker that took its time before now would run an item that has expired meanwhile.
  return job.CheckNotAbandoned(end);
}

}  // namespace longshort::core
