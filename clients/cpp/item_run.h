// Runs the texts or images of files through a model, for `longshort score`, `classify` and `embed`: texts over one
// stream, images in calls of a few. Corpora are the work of longshort-batch.
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
#include "clients/cpp/inputs.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

struct ItemOptions {
  DocumentForm form;
  // Show no progress.
  bool quiet = false;
  // Cut documents to the model's maximum length.
  bool truncate = false;

  // Adds all options except --second and --truncate, which only classifiers have.
  void AddTo(OptionTable& table);
  // Adds all options under a title.
  void AddForClassifiersTo(OptionTable& table);
};

// Returns whether the model takes texts; otherwise it takes images.
bool TakesTexts(const v1::Model& model);

// Returns the texts or images that the arguments name. `embeds` is set for vectors: models that compare two documents
// embed each by itself. Errors: UsageError, also for options that do not suit the model.
absl::StatusOr<CollectedFiles> CollectItems(const ItemOptions& options, const std::vector<std::string>& arguments,
                                            const v1::Model& model, bool embeds, const CommandContext& context);

// How the answers of a run are written, in the order of the items.
struct ItemOutput {
  // Write failures as JSON objects to the output, instead of lines to `terminal.error`.
  bool json_errors = false;
  // Writes an answer that has no error.
  std::function<void(const std::string& name, const v1::ScoreTextsResponse& answer)> show;
  // Called for an item that failed. Its error is already written.
  std::function<void()> skip = [] {};
};

// Sends the items to the model and writes the answers in their order. Texts go over one stream, images in calls of a
// few, several calls at a time. `request` has the options of all items, without the model and `truncate`.
//
// Reports items that cannot be read or that fail, and continues with the others. Returns kOk only if all items have a
// result; otherwise kInvalid if an item is invalid or not allowed, or else kUnavailable, kOther or kUsage (unreadable),
// in this order. Errors: why the run ended early; INTERNAL if a call has another number of answers than images.
absl::StatusOr<ExitCode> RunItems(const ItemOptions& options, CollectedFiles files, const v1::Model& model,
                                  v1::ScoreTextsOptions request, const ItemOutput& output,
                                  const CommandContext& context);

using Images = google::protobuf::RepeatedPtrField<v1::Image>;

// Some of the files, in order.
struct ImageBatch {
  std::vector<std::string> names;
  // One status for each name: OK if the image is in `images`, otherwise why it is not.
  std::vector<absl::Status> statuses;
  Images images;
};

// Reads files lazily, so that only a few batches are in memory.
class ImageBatches final {
 public:
  struct Options {
    // Maximum images of a batch: enough to fill the model's batches, few enough to show progress.
    int32_t images = 8;
    // Maximum bytes of a batch with several images.
    int64_t bytes = int64_t{4} << 20;
  };

  // `limits`, from GetModel, cap `options`.
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

}  // namespace longshort::client
