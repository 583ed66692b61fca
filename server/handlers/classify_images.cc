#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "server/handlers/class_answer.h"
#include "server/handlers/handlers.h"
#include "server/handlers/image_items.h"

namespace longshort::server {

absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done) {
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedClassifier> model, record.FindClassifier(call.model));
  record.CountIn(model->statistics, kClassificationOperation);
  LS_RETURN_IF_ERROR(CheckImages(record, *model, call.images.size()));
  LS_ASSIGN_OR_RETURN(const ClassOptions answer, ReadClassAnswer(call.options, model->info, names));
  const auto count = static_cast<int64_t>(call.images.size());
  LS_RETURN_IF_ERROR(CheckAnswerFits(answer, model->info, count, names));
  LS_RETURN_IF_ERROR(record.answers().Hold(count * MaxBytes(answer, model->info)));

  RunImages(record, model, std::move(call.images), OutputOf(answer),
            [&record, model, answer, done = std::move(done)](absl::StatusOr<ImageResults> images) {
              if (!images.ok()) return done(images.status());
              ClassifyResult result{.images = {}, .model = record.answering_model(), .classifier = model};
              for (absl::StatusOr<core::ItemResult>& image : *images) {
                if (image.ok()) {
                  result.images.emplace_back(AnswerOf(*std::move(image), answer, model->info));
                } else {
                  result.images.emplace_back(image.status());
                }
              }
              done(std::move(result));
            });
  return absl::OkStatus();
}

}  // namespace longshort::server
