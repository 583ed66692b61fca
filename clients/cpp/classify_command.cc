// `longshort classify`: the most probable classes of images or texts.
#include <deque>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/image_batches.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/results.h"
#include "clients/cpp/text_run.h"

namespace longshort::client {
namespace {

// A call in flight. The destructor waits until it ends.
struct Call {
  ImageBatch batch;
  std::future<absl::StatusOr<v1::ClassifyImageResponse>> response;
};

void Begin(Client& client, ImageBatch batch, std::deque<Call>& calls) {
  Call& call = calls.emplace_back();
  call.batch = std::move(batch);
  // push and pop at the ends of a deque do not move its other elements.
  call.response = std::async(std::launch::async, [&client, &request = call.batch.request] {
    if (request.images_size() == 0) return absl::StatusOr<v1::ClassifyImageResponse>(v1::ClassifyImageResponse());
    return client.ClassifyImage(request);
  });
}

class ClassifyCommand final : public Command {
 public:
  ClassifyCommand()
      : Command("classify", "Classify images or texts: show the most probable classes of each",
                R"(Usage: longshort classify [options] [FILE|FOLDER|PATTERN|-]...

Shows the most probable classes of each image or text, with their probabilities. The model determines whether the files are
images or texts: see "longshort models". For language models, use "longshort score".

Arguments are files, folders (searched recursively), quoted patterns ('a/*.jpg'), or - for standard input. Results are in the
order of the files. If an item cannot be read or classified, the program reports it by name and continues with the others. A
final line counts the failures. The exit code is then 2 if an item is invalid or not allowed (do not send it again unchanged);
otherwise 3 if the server refused one because it was full or stopping, 5 for any other error, or 1 if files could not be read. If
the server is stopping or full, a call is tried up to four times. In folders, hidden files are not read, and of images only those
with an extension of JPEG, PNG or WebP. A final line counts the others; they do not change the exit code.

Images: the server decodes JPEG, PNG and WebP, and resizes and crops each image for the model. Convert other formats first. With
--json, the output has one object for each image: {"name": FILE, "classification": {...}} or {"name": FILE, "error": {...}}.

Texts: each file is one document, including its final newline. With --lines, each line is a document, named FILE:LINE. With
--json-lines, each line is an object {"text": ..., "name": ...}; "name" is optional, other fields are ignored. For models that
compare two documents, pass --second once for each file; --lines separates the two documents with a tab, --json-lines has the
field "second_text". Models that join two documents also take one: then --second and "second_text" are optional, and a line of
--lines is one document. With --json, the output has one line for each document: {"name": ..., "model": ..., "fingerprint": ...,
"precision": ..., ...} with the fields of TextClassification; empty lists are omitted. For a large corpus, use longshort-batch
(pip install './clients/python[batch]').

Examples:
  longshort classify photo.jpg
  longshort classify --model=flowers --top-k=1 photos 'more/2024-*.jpg'
  curl -s https://example.org/cat.jpg | longshort classify -
  longshort classify --model=languages letter.txt
  longshort classify --model=languages --truncate --top-k=1 letters/
  longshort classify --model=citations --second cited.txt citing.txt
  longshort classify --json photos | jq -r 'select(.classification) | [.name, .classification.classes[0].label] | @tsv'
)") {}

  void AddOptions(OptionTable& table) override {
    table.Add("top-k", "N", "Number of classes to show, most probable first.", &top_k_,
              {1, std::numeric_limits<int32_t>::max()});
    table.AddSwitch("logits", "Also show the logits of all classes.", &logits_);
    table.BeginSection("Options for texts:");
    texts_.AddTo(table);
    texts_.AddSecondTo(table);
    table.AddSwitch("truncate", "Truncate documents to the model's maximum length.", &truncate_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_RETURN_IF_ERROR(texts_.Check());
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (!model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a language model; use \"longshort score\""));
    }
    return model.classifier().input() == v1::CLASSIFIER_INPUT_TEXT ? ClassifyTexts(arguments, model, context)
                                                                   : ClassifyImages(arguments, model, context);
  }

 private:
  absl::StatusOr<ExitCode> ClassifyTexts(const std::vector<std::string>& arguments, const v1::Model& model,
                                         const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(TextFiles files, CollectTexts(texts_, arguments, model, /*embeds=*/false));
    v1::ScoreTextsOptions request;
    request.set_truncate(truncate_);
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    return RunTexts(texts_, model, std::move(request), std::move(files), context);
  }

  absl::StatusOr<ExitCode> ClassifyImages(const std::vector<std::string>& arguments, const v1::Model& model,
                                          const CommandContext& context) const {
    if (texts_.by_lines() || texts_.ids || truncate_ || !texts_.second.empty()) {
      return UsageError(
          absl::StrCat("--lines, --json-lines, --ids, --truncate and --second are for "
                       "classifiers of texts; ",
                       model.name(), " takes images"));
    }
    if (arguments.empty() && context.terminal.input_is_terminal) {
      return UsageError("name an image, a folder, or - for standard input");
    }
    LS_ASSIGN_OR_RETURN(CollectedFiles files,
                        AsUsage(CollectFiles(DocumentNames(arguments), IsImageName, MissingFile::kStays)));
    const auto total = static_cast<int64_t>(files.names.size());
    ImageBatches batches(std::move(files.names), model.limits(), {}, RequestWithoutImages(model), context.terminal);
    ItemFailures failures(context.terminal, context.options.json, "images");
    const absl::Status status = [&] {
      ProgressBar progress(context.terminal, {.unit = "images", .total = total, .quiet = texts_.quiet});
      return ClassifyBatches(batches, failures, progress, context);
    }();
    const ExitCode items = failures.Summarize(total);
    ReportLeftOut(files.left_out, context.terminal);
    LS_RETURN_IF_ERROR(status);
    return items;
  }

  v1::ClassifyImageRequest RequestWithoutImages(const v1::Model& model) const {
    v1::ClassifyImageRequest request;
    // Pins the version that GetModel described, even if a newer one is loaded meanwhile.
    request.mutable_model()->set_name(model.name());
    request.mutable_model()->set_version(model.version());
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    return request;
  }

  static absl::Status ClassifyBatches(ImageBatches& batches, ItemFailures& failures, ProgressBar& progress,
                                      const CommandContext& context) {
    std::deque<Call> calls;
    while (!batches.AtEnd() || !calls.empty()) {
      while (!batches.AtEnd() && calls.size() < kImageCallsInFlight) Begin(context.client, batches.Next(), calls);
      const absl::StatusOr<v1::ClassifyImageResponse> response = calls.front().response.get();
      absl::Status status = response.ok() ? PlaceResults(*response, calls.front().batch) : response.status();
      if (!status.ok()) {
        context.client.Cancel();  // the results of later calls would follow a gap
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
  TextRunOptions texts_;
  bool truncate_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace longshort::client
