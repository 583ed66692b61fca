#include "core/classification/classification_job.h"

#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {

ClassificationJob::ClassificationJob(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener,
                                     absl::Time submitted)
    : context_(std::move(request.context)),
      output_(request.output),
      bytes_(request.bytes),
      preparation_work_(request.preparation_work),
      work_until_prepared_(request.work_until_prepared),
      submitted_(submitted),
      listener_(std::move(listener)) {
  if (auto* item = std::get_if<models::ClassifierItem>(&request.item); item != nullptr) {
    item_ = std::move(*item);
    prepared_at_ = submitted;
  } else {
    preparation_ = std::get<ItemPreparation>(std::move(request.item));
  }
}

absl::Status ClassificationJob::Prepare() {
  const ItemPreparation preparation = std::exchange(preparation_, nullptr);  // frees its input at the end
  LS_ASSIGN_OR_RETURN(item_, PrepareItem(preparation));
  return absl::OkStatus();
}

absl::Status ClassificationJob::CheckNotAbandoned(absl::Time now) const {
  return longshort::core::CheckNotAbandoned(context_, now, /*started=*/false);
}

void ClassificationJob::Fail(const absl::Status& status) { listener_->OnFinished(status); }

void ClassificationJob::Finish(std::vector<float> row, absl::Time begin, absl::Time end) {
  listener_->OnFinished(ItemResult{.row = std::move(row),
                                   .timings = {.submitted = submitted_,
                                               .preparation = prepared_at_ - submitted_,
                                               .queue = begin - prepared_at_,
                                               .run = end - begin}});
}

void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer) {
  observer.OnEnded(status);
  job.Fail(status);
}

}  // namespace longshort::core
