// `longshort classify`: the most probable classes of images or texts.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/item_run.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

// "reviews/7.txt  (1000 tokens, truncated)"
std::string ClassHeading(const std::string& name, const v1::TextClassification& classification) {
  std::vector<std::string> readings;
  for (const v1::DocumentReading& document : classification.documents()) {
    readings.push_back(absl::StrCat(document.token_count(), " tokens", document.truncated() ? ", truncated" : ""));
  }
  return absl::StrCat(name, "  (", absl::StrJoin(readings, "; "), ")");
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
final line counts the failures, and the exit code is then not 0; --help=all lists the codes. If the server is stopping or full, a
call is repeated up to four times. In folders, hidden files are not read, and of images only those with an extension of JPEG, PNG
or WebP. A final line counts the others; they do not change the exit code.

Images: the server decodes JPEG, PNG and WebP, and resizes and crops each image for the model. Convert other formats first. With
--json, the output has one object for each image: {"name": FILE, "classification": {...}} or {"name": FILE, "error": {...}}.

Texts: each file is one document, including its final newline. With --lines, each line is a document, named FILE:LINE. Models
that compare two documents take one file and --second=FILE; for models that join two documents, --second is optional. With --json,
the output has one line for each document: {"name": ..., "model": ..., "fingerprint": ..., "precision": ..., ...} with the fields of
TextClassification; empty lists are omitted. For a large corpus, JSON lines or many pairs, use longshort-batch
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
    options_.AddForClassifiersTo(table);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (!model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a language model; use \"longshort score\""));
    }
    LS_ASSIGN_OR_RETURN(CollectedFiles files, CollectItems(options_, arguments, model, /*embeds=*/false, context));
    return TakesTexts(model) ? ClassifyTexts(std::move(files), model, context)
                             : ClassifyImages(std::move(files), model, context);
  }

 private:
  absl::StatusOr<ExitCode> ClassifyTexts(CollectedFiles files, const v1::Model& model,
                                         const CommandContext& context) const {
    v1::ScoreTextsOptions request;
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      v1::TextClassification classification = answer.classification();
      if (!context.options.json) {
        return WriteClassTable(ClassHeading(name, classification), classification.classification(), context.terminal);
      }
      if (!options_.timings) classification.mutable_classification()->clear_timings();
      WriteAnswerJsonLine(name, model, &answer.model(), classification, context.terminal.output);
    };
    return RunTexts(options_, std::move(files), model, std::move(request),
                    {.json_errors = context.options.json, .show = show}, context);
  }

  absl::StatusOr<ExitCode> ClassifyImages(CollectedFiles files, const v1::Model& model,
                                          const CommandContext& context) const {
    const auto call = [&](Images images) -> absl::StatusOr<std::vector<v1::ScoreTextsResponse>> {
      v1::ClassifyImageRequest request;
      *request.mutable_model() = SelectorOf(model);
      request.set_top_k(top_k_);
      request.set_all_logits(logits_);
      request.mutable_images()->Swap(&images);
      LS_ASSIGN_OR_RETURN(v1::ClassifyImageResponse response, context.client.ClassifyImage(request));
      std::vector<v1::ScoreTextsResponse> answers;
      for (v1::ImageResult& result : *response.mutable_results()) {
        v1::ScoreTextsResponse& answer = answers.emplace_back();
        if (result.has_error()) {
          *answer.mutable_error() = std::move(*result.mutable_error());
        } else {
          *answer.mutable_classification()->mutable_classification() = std::move(*result.mutable_classification());
        }
      }
      return answers;
    };
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      const v1::Classification& classification = answer.classification().classification();
      if (!context.options.json) return WriteClassTable(name, classification, context.terminal);
      v1::ImageResult result;
      *result.mutable_classification() = classification;
      WriteNamedJsonLine(name, result, context.terminal.output);
    };
    return RunImages(options_, std::move(files), model, call, {.json_errors = context.options.json, .show = show},
                     context);
  }

  int32_t top_k_ = 5;
  bool logits_ = false;
  ItemOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace longshort::client
