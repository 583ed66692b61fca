// Runs image files through a model, for `longshort classify` and `embed`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/command.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/terminal.h"
#include "clients/cpp/text_run.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

using Images = google::protobuf::RepeatedPtrField<v1::Image>;

// Some of the files, in order.
struct ImageBatch {
  std::vector<std::string> names;
  // One for each name. OK if the image is in `images`, otherwise the reason why not: unreadable or too large.
  std::vector<absl::Status> statuses;
  Images images;
};

// Reads files lazily, so that only a few batches are in memory.
class ImageBatches final {
 public:
  struct Options {
    // Images in a batch: enough to fill the model's batches, few enough to show progress.
    int32_t images = 8;
    // Maximum bytes of a batch with several images.
    int64_t bytes = int64_t{4} << 20;
  };

  // `limits`: from GetModel; they cap `options`.
  ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options, Terminal& terminal);

  bool AtEnd() const { return next_ == names_.size(); }
  // REQUIRES: not AtEnd().
  ImageBatch Next();

 private:
  // Errors: NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if it exceeds the server's limit.
  absl::StatusOr<std::string> Read(const std::string& name) const;

  const std::vector<std::string> names_;
  const int64_t image_bytes_limit_;
  const int32_t images_per_batch_;
  const int64_t bytes_per_batch_;
  Terminal& terminal_;
  size_t next_ = 0;
  // The content of the file at next_, if it was read but did not fit in the previous batch.
  std::optional<absl::StatusOr<std::string>> waiting_;
};

// The images that the arguments name. Errors: UsageError, also for options that only texts have.
absl::StatusOr<CollectedFiles> CollectImages(const TextRunOptions& texts, const std::vector<std::string>& arguments,
                                             const v1::Model& model, const CommandContext& context);

struct ImageRun {
  // Write failures as JSON objects.
  bool json = false;
  // Show no progress.
  bool quiet = false;
  // Makes a call for some images, and returns an answer for each, in the form that texts have. Called from several
  // threads.
  std::function<absl::StatusOr<std::vector<v1::ScoreTextsResponse>>(Images images)> call;
  // Writes an answer. An error was reported already.
  std::function<void(const std::string& name, const v1::ScoreTextsResponse& answer)> show;
};

// Sends the images in calls of a few, several calls at a time, and shows the answers in the order of the files. Reports
// images that cannot be read or that fail, and continues with the others. Returns kOk only if all have a result.
// Errors: those of a call, which ends the run; INTERNAL if it has another number of answers.
absl::StatusOr<ExitCode> RunImages(CollectedFiles files, const v1::Model& model, const ImageRun& run,
                                   const CommandContext& context);

}  // namespace longshort::client
