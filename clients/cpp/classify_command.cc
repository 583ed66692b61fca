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

// Writes the classes under a heading: "photo.jpg", or "reviews/7.txt  (1000 tokens, truncated)" for a text.
void WriteTable(const std::string& name, const v1::TextClassification& classification, Terminal& terminal) {
  std::vector<std::string> readings;
  for (const v1::DocumentReading& document : classification.documents()) {
    readings.push_back(absl::StrCat(document.token_count(), " tokens", document.truncated() ? ", truncated" : ""));
  }
  const std::string heading = readings.empty() ? name : absl::StrCat(name, "  (", absl::StrJoin(readings, "; "), ")");
  WriteClassTable(heading, classification.classification(), terminal);
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
    v1::ScoreTextsOptions request;
    request.set_top_k(top_k_);
    request.set_all_logits(logits_);
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      if (!context.options.json) return WriteTable(name, answer.classification(), context.terminal);
      v1::TextClassification text = answer.classification();
      if (!TakesTexts(model)) {
        v1::ImageResult image;
        image.mutable_classification()->Swap(text.mutable_classification());
        return WriteNamedJsonLine(name, image, context.terminal.output);
      }
      text.mutable_classification()->clear_timings();
      WriteAnswerJsonLine(name, model, &answer.model(), text, context.terminal.output);
    };
    return RunItems(options_, std::move(files), model, std::move(request),
                    {.json_errors = context.options.json, .show = show}, context);
  }

 private:
  int32_t top_k_ = 5;
  bool logits_ = false;
  ItemOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace longshort::client
