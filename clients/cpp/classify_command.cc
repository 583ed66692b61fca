// `longshort classify`: which classes a model gives to images.
#include <deque>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/class_table.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/image_batches.h"
#include "clients/cpp/item_failures.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/progress_bar.h"

namespace longshort {
namespace {

// Calls that run at the same time: the server prepares the images of one while the model works on those of another.
constexpr size_t kCallsInFlight = 4;

// A call that was begun. Destroying it waits for its end.
struct Call {
  ImageBatch batch;
  std::future<absl::StatusOr<v1::ClassifyImageResponse>> response;
};

void Begin(Client& client, ImageBatch batch, std::deque<Call>& calls) {
  Call& call = calls.emplace_back();
  call.batch = std::move(batch);
  // Elements of a deque stay where they are as others come and go at its ends.
  call.response = std::async(std::launch::async, [&client, &request = call.batch.request] {
    if (request.images_size() == 0) return absl::StatusOr<v1::ClassifyImageResponse>(v1::ClassifyImageResponse());
    return client.ClassifyImage(request);
  });
}

class ClassifyCommand final : public Command {
 public:
  absl::string_view name() const override { return "classify"; }
  absl::string_view summary() const override { return "Classify images: the likeliest classes of each"; }
  absl::string_view description() const override {
    return R"(Usage: longshort classify [options] FILE|FOLDER|PATTERN|-...

Shows which classes the model gives to each image, likeliest first, with their probabilities. The server decodes JPEG, PNG and
WebP, and resizes and crops each image as the model wants it. It serves classifiers of images and of pixel sequences.

Images are files, folders (their images and those of the folders in them, found by extension), patterns in quotes ('a/*.jpg'),
or - for standard input. Results come in the order of the files. An image that the server does not take, or that cannot be
read, is told beside its name and the others go on; a closing line tells how many there were. The exit code is then 2, or 3 if
all were only refused by a full server, or 1 if none could be read.

With --json, one object an image: {"name": FILE, "classification": {...}} or {"name": FILE, "error": {...}}.

Examples:
  longshort classify photo.jpg
  longshort classify --top-k=1 photos
  longshort classify 'photos/2024-*.jpg' more.png
  curl -s https://example.org/cat.jpg | longshort classify -
  longshort classify --json photos | jq -r 'select(.classification) | [.name, .classification.classes[0].label] | @tsv'
)";
  }
  void AddOptions(OptionTable& table) override {
    table.Add("top-k", "N", "How many of the likeliest classes to show.", &top_k_);
    table.AddSwitch("logits", "Show the logits of all classes too.", &logits_);
  }

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (top_k_ < 1) return FailUsage(context.terminal, absl::StrCat("--top-k is ", top_k_, "; it must be at least 1"));
    if (arguments.empty() && context.terminal.input_is_terminal) {
      return FailUsage(context.terminal, "name an image, a folder, or - for standard input");
    }
    absl::StatusOr<std::vector<std::string>> names =
        CollectFiles(DocumentNames(arguments), IsImageName, MissingFile::kStays);
    if (!names.ok()) return FailUsage(context.terminal, names.status().message());

    v1::GetModelRequest request;
    *request.mutable_model() = context.model;
    const absl::StatusOr<v1::Model> model = context.client.GetModel(request);
    if (!model.ok()) return FailCall(context, model.status());
    const v1::ClassifierInput input = model->classifier().input();
    if (input != v1::CLASSIFIER_INPUT_IMAGE && input != v1::CLASSIFIER_INPUT_PIXEL_SEQUENCE) {
      return FailCall(context, absl::FailedPreconditionError(absl::StrCat("the model ", model->name(), " (",
                                                                          model->architecture(), ") takes no images")));
    }
    return Classify(*std::move(names), *model, context);
  }

 private:
  v1::ClassifyImageRequest RequestWithoutImages(const v1::Model& model) const {
    v1::ClassifyImageRequest request;
    // The version that GetModel described, whatever is loaded meanwhile.
    request.mutable_model()->set_name(model.name());
    request.mutable_model()->set_version(model.version());
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    return request;
  }

  ExitCode Classify(std::vector<std::string> names, const v1::Model& model, const CommandContext& context) const {
    const auto total = static_cast<int64_t>(names.size());
    ImageBatches batches(std::move(names), model.limits(), {}, RequestWithoutImages(model), context.terminal);
    ItemFailures failures(context.terminal, context.options.json, "images");
    const absl::Status status = [&] {
      ProgressBar progress(context.terminal, {.unit = "images", .total = total});
      return ClassifyBatches(batches, failures, progress, context);
    }();
    const ExitCode items = failures.Summarize(total);
    return status.ok() ? items : FailCall(context, status);
  }

  static absl::Status ClassifyBatches(ImageBatches& batches, ItemFailures& failures, ProgressBar& progress,
                                      const CommandContext& context) {
    std::deque<Call> calls;
    while (!batches.AtEnd() || !calls.empty()) {
      while (!batches.AtEnd() && calls.size() < kCallsInFlight) Begin(context.client, batches.Next(), calls);
      const absl::StatusOr<v1::ClassifyImageResponse> response = calls.front().response.get();
      absl::Status status = response.ok() ? PlaceResults(*response, calls.front().batch) : response.status();
      if (!status.ok()) {
        context.client.Cancel();  // the other calls: what they answer would come behind a gap
        return status;
      }
      Print(calls.front().batch, failures, progress, context);
      calls.pop_front();
      if (!context.terminal.output) {
        context.client.Cancel();
        return absl::CancelledError("standard output cannot be written");
      }
    }
    return absl::OkStatus();
  }

  static void Print(const ImageBatch& batch, ItemFailures& failures, ProgressBar& progress,
                    const CommandContext& context) {
    for (size_t i = 0; i < batch.names.size(); ++i) {
      const v1::ImageResult& result = batch.results[i];
      progress.Hide();
      if (result.has_error()) {
        failures.Add(batch.names[i], result.error());
      } else if (context.options.json) {
        WriteNamedJsonLine(batch.names[i], result, context.terminal.output);
      } else {
        WriteClassTable(batch.names[i], result.classification(), context.terminal);
      }
      progress.Advance();
    }
  }

  int32_t top_k_ = 5;
  bool logits_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace longshort
