// `longshort classify`: which classes a classifier gives to images or texts.
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
  ClassifyCommand()
      : Command("classify", "Classify images or texts: the likeliest classes of each",
                R"(Usage: longshort classify [options] [FILE|FOLDER|PATTERN|-]...

Shows which classes the classifier gives to each image or text, likeliest first, with their probabilities. What a file holds is
what the model takes: "longshort models" shows it. "longshort score" asks language models.

Arguments are files, folders (with the folders in them; of images those with an image's extension), patterns in quotes
('a/*.jpg'), or - for standard input. Results come in the order of the files. An item that is refused, or that cannot be read, is
shown beside its name and the others go on; a closing line says how many there were. The exit code is then 2, or 3 if all were
only refused by a full server, or 1 if none could be read. A call that a stopping or full server did not take is tried four times
(gRPC's own retries).

Images: the server decodes JPEG, PNG and WebP, and resizes and crops each image as the model wants it. The bytes are sent as they
are; convert other formats before. With --json, one object an image: {"name": FILE, "classification": {...}} or
{"name": FILE, "error": {...}}.

Texts: each file is one document, with all its bytes. With --lines each line is one, named FILE:LINE; with --json-lines an object
{"text": ..., "name": ...} (the name may be left out, other fields are ignored). For models that compare two documents, --second
names the second one, once for each file; --lines have a tab between the two, --json-lines the field "second_text". With --json,
a line a document: {"name": ..., "model": ..., "fingerprint": ..., "precision": ..., ...} with the fields of TextClassification;
lists without elements are left out. For a whole corpus there is longshort-batch (pip install './clients/python[batch]').

Examples:
  longshort classify photo.jpg
  longshort classify --model=flowers --top-k=1 photos 'more/2024-*.jpg'
  curl -s https://example.org/cat.jpg | longshort classify -
  longshort classify --model=movie_reviews review.txt
  longshort classify --model=movie_reviews --truncate --top-k=1 reviews/
  longshort classify --model=citations --second cited.txt citing.txt
  longshort classify --json photos | jq -r 'select(.classification) | [.name, .classification.classes[0].label] | @tsv'
)") {}

  void AddOptions(OptionTable& table) override {
    table.Add("top-k", "N", "How many of the likeliest classes to show.", &top_k_,
              {1, std::numeric_limits<int32_t>::max()});
    table.AddSwitch("logits", "Show the logits of all classes too.", &logits_);
    table.BeginSection("Options for texts:");
    texts_.AddTo(table);
    table.Add("second", "FILE", "For models of two documents: the second one; once for each file.", &second_);
    table.AddSwitch("truncate", "Of a longer document, read the first tokens.", &truncate_);
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
    LS_ASSIGN_OR_RETURN(std::vector<std::string> names, AsUsage(CollectFiles(DocumentNames(arguments), AnyFile)));
    LS_ASSIGN_OR_RETURN(std::vector<std::string> second_names, AsUsage(CollectFiles(second_, AnyFile)));
    LS_RETURN_IF_ERROR(CheckPairs(model, names.size(), second_names.size()));
    v1::ScoreTextsOptions request;
    request.set_truncate(truncate_);
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    return RunTexts(texts_, model, std::move(request), std::move(names), std::move(second_names), context);
  }

  // Whether there are as many documents as the model compares. Errors: UsageError.
  absl::Status CheckPairs(const v1::Model& model, size_t names, size_t second_names) const {
    const bool takes_two = model.classifier().documents() == 2;
    if (second_names > 0 && (texts_.by_lines() || !takes_two)) {
      return UsageError(texts_.by_lines() ? std::string("lines hold both documents: give --second without them")
                                          : absl::StrCat("--second: the model ", model.name(), " takes one document"));
    }
    if (takes_two && !texts_.by_lines() && second_names != names) {
      return UsageError(absl::StrCat(
          "the model ", model.name(), " takes two documents: ", second_names, " second ones (--second) were given for ",
          names, " first ones. Pairs may also be lines: --lines, with a tab between, or --json-lines"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ExitCode> ClassifyImages(const std::vector<std::string>& arguments, const v1::Model& model,
                                          const CommandContext& context) const {
    if (texts_.by_lines() || texts_.ids || truncate_ || !second_.empty()) {
      return UsageError(
          absl::StrCat("--lines, --json-lines, --ids, --truncate and --second are for "
                       "classifiers of texts; ",
                       model.name(), " takes images"));
    }
    if (arguments.empty() && context.terminal.input_is_terminal) {
      return UsageError("name an image, a folder, or - for standard input");
    }
    LS_ASSIGN_OR_RETURN(std::vector<std::string> names,
                        AsUsage(CollectFiles(DocumentNames(arguments), IsImageName, MissingFile::kStays)));
    const auto total = static_cast<int64_t>(names.size());
    ImageBatches batches(std::move(names), model.limits(), {}, RequestWithoutImages(model), context.terminal);
    ItemFailures failures(context.terminal, context.options.json, "images");
    const absl::Status status = [&] {
      ProgressBar progress(context.terminal, {.unit = "images", .total = total, .quiet = texts_.quiet});
      return ClassifyBatches(batches, failures, progress, context);
    }();
    const ExitCode items = failures.Summarize(total);
    LS_RETURN_IF_ERROR(status);
    return items;
  }

  v1::ClassifyImageRequest RequestWithoutImages(const v1::Model& model) const {
    v1::ClassifyImageRequest request;
    // The version that GetModel described, whatever is loaded meanwhile.
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
  TextRunOptions texts_;
  std::vector<std::string> second_;
  bool truncate_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace longshort::client
