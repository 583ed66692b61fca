#include "clients/cpp/image_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "clients/cpp/documents.h"

namespace longshort::client {
namespace {

// Concurrent calls: the server decodes the images of one call while the model runs those of another.
constexpr size_t kCallsInFlight = 4;

using Answers = absl::StatusOr<std::vector<v1::ScoreTextsResponse>>;

absl::Status TooLarge(int64_t bytes, int64_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file has ", bytes, " bytes; the server accepts at most ", limit, " for an image"));
}

struct ImageCall {
  ImageBatch batch;
  std::future<Answers> answers;  // its destructor waits until the call ends
};

ImageCall Begin(ImageBatch batch, const ImageRun& run) {
  std::future<Answers> answers =
      std::async(std::launch::async, [&run, images = std::exchange(batch.images, {})]() mutable {
        return images.empty() ? Answers(std::vector<v1::ScoreTextsResponse>()) : run.call(std::move(images));
      });
  return {std::move(batch), std::move(answers)};
}

// Waits for the call. Returns an answer for each name of its batch. Errors: see RunImages.
Answers Finish(ImageCall& call) {
  LS_ASSIGN_OR_RETURN(const std::vector<v1::ScoreTextsResponse> sent, call.answers.get());
  std::vector<v1::ScoreTextsResponse> answers;
  size_t count = 0;
  for (const absl::Status& status : call.batch.statuses) {
    v1::ScoreTextsResponse& answer = answers.emplace_back();
    if (!status.ok()) {
      *answer.mutable_error() = MakeItemError(status);
    } else if (const size_t index = count++; index < sent.size()) {
      answer = sent[index];
      if (!answer.has_error()) continue;
      // The server names an image by its index in the call; the output shows the file's name.
      const std::string prefix = absl::StrCat("images[", index, "]: ");
      answer.mutable_error()->set_message(std::string(absl::StripPrefix(answer.error().message(), prefix)));
    }
  }
  if (sent.size() == count) return answers;
  return absl::InternalError(absl::StrCat("the server answered ", count, " images with ", sent.size(), " results"));
}

}  // namespace

ImageBatches::ImageBatches(std::vector<std::string> names, const v1::Limits& limits, const Options& options,
                           Terminal& terminal)
    : names_(std::move(names)),
      image_bytes_limit_(limits.image_bytes()),
      images_per_batch_(std::clamp(limits.images(), 1, options.images)),
      bytes_per_batch_(std::min(image_bytes_limit_, options.bytes)),
      terminal_(terminal) {}

ImageBatch ImageBatches::Next() {
  ImageBatch batch;
  int64_t bytes = 0;
  for (; !AtEnd() && static_cast<int32_t>(batch.names.size()) < images_per_batch_; ++next_) {
    absl::StatusOr<std::string> image = waiting_.has_value() ? *std::move(waiting_) : Read(names_[next_]);
    waiting_.reset();
    if (image.ok()) {
      bytes += static_cast<int64_t>(image->size());
      if (!batch.images.empty() && bytes > bytes_per_batch_) {
        waiting_ = std::move(image);
        break;
      }
    }
    batch.names.push_back(names_[next_]);
    batch.statuses.push_back(image.status());
    if (image.ok()) batch.images.Add()->set_encoded(*std::move(image));
  }
  return batch;
}

absl::StatusOr<std::string> ImageBatches::Read(const std::string& name) const {
  std::error_code no_regular_file;  // then the check after reading applies
  const auto size = static_cast<int64_t>(std::filesystem::file_size(name, no_regular_file));
  if (!no_regular_file && size > image_bytes_limit_) return TooLarge(size, image_bytes_limit_);
  absl::StatusOr<std::string> bytes = ReadDocument(name, terminal_);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > image_bytes_limit_) {
    return TooLarge(static_cast<int64_t>(bytes->size()), image_bytes_limit_);
  }
  return bytes;
}

absl::StatusOr<CollectedFiles> CollectImages(const TextRunOptions& texts, const std::vector<std::string>& arguments,
                                             const v1::Model& model, const CommandContext& context) {
  if (texts.form.by_lines() || texts.form.ids || texts.truncate || !texts.second.empty()) {
    return UsageError(absl::StrCat("--lines, --json-lines, --ids, --truncate and --second are for classifiers of ",
                                   "texts; ", model.name(), " takes images"));
  }
  if (arguments.empty() && context.terminal.input_is_terminal) {
    return UsageError("name an image, a folder, or - for standard input");
  }
  return AsUsage(CollectFiles(DocumentNames(arguments), IsImageName, MissingFile::kStays));
}

absl::StatusOr<ExitCode> RunImages(CollectedFiles files, const v1::Model& model, const ImageRun& run,
                                   const CommandContext& context) {
  const auto total = static_cast<int64_t>(files.names.size());
  ImageBatches batches(std::move(files.names), model.limits(), {}, context.terminal);
  ItemFailures failures(context.terminal, run.json, "images");
  std::deque<ImageCall> calls;
  const absl::Status status = [&]() -> absl::Status {
    ProgressBar progress(context.terminal, {.unit = "images", .total = total, .quiet = run.quiet});
    while (!batches.AtEnd() || !calls.empty()) {
      while (!batches.AtEnd() && calls.size() < kCallsInFlight) calls.push_back(Begin(batches.Next(), run));
      LS_ASSIGN_OR_RETURN(const std::vector<v1::ScoreTextsResponse> answers, Finish(calls.front()));
      for (size_t i = 0; i < answers.size(); ++i) {
        const std::string& name = calls.front().batch.names[i];
        progress.Hide();
        if (answers[i].has_error()) failures.Add(name, answers[i].error());
        run.show(name, answers[i]);
        progress.Advance();
      }
      if (!context.terminal.output) return absl::CancelledError("standard output cannot be written");
      calls.pop_front();
    }
    return absl::OkStatus();
  }();
  if (!status.ok()) context.client.Cancel();  // the results of later calls would follow a gap
  const ExitCode code = failures.Summarize(total);
  ReportLeftOut(files.left_out, context.terminal);
  LS_RETURN_IF_ERROR(status);
  return code;
}

}  // namespace longshort::client
