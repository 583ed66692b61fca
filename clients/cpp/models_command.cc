// `longshort models`: the models that the server has loaded.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

std::string CountOrDash(int64_t count, absl::string_view unit = "") {
  return count > 0 ? absl::StrCat(count, unit) : "-";
}

std::string TextOrDash(const std::string& text) { return text.empty() ? "-" : text; }

// Returns the model's kind of input.
std::string InputText(const v1::Model& model) {
  const v1::ClassifierProperties& classifier = model.classifier();
  switch (classifier.input()) {
    case v1::CLASSIFIER_INPUT_IMAGE:
      return classifier.channels() == 1 ? "grey images" : "images";
    case v1::CLASSIFIER_INPUT_PIXEL_SEQUENCE:
      return "images as grey pixels";
    default:
      if (classifier.documents() == 2) return "pairs of texts";
      if (classifier.max_documents() < 2) return "text";
      return classifier.trained_on_pairs() ? "pairs (trained on) or text" : "text (trained on) or pairs";
  }
}

// Writes one row for each model.
void WriteList(const v1::ListModelsResponse& response, std::ostream& output) {
  std::vector<TextRow> rows = {{"NAME", "VERSION", "ARCHITECTURE", "PARAMETERS", "PRECISION", "TAKES", "CLASSES",
                                "TOKENIZER", "VOCABULARY", "MEMORY"}};
  for (const v1::Model& model : response.models()) {
    rows.push_back({model.name(), absl::StrCat(model.version()), model.architecture(), absl::StrCat(model.parameters()),
                    model.precision(), InputText(model), CountOrDash(model.classifier().classes()),
                    TextOrDash(model.tokenizer()), CountOrDash(model.vocabulary_size()),
                    CountOrDash(model.language_model().memory_length(), " tokens")});
  }
  output << TextTable(rows);
}

std::string AtMost(int64_t count, absl::string_view unit) { return absl::StrCat("at most ", count, unit); }

std::vector<TextRow> LanguageModelRows(const v1::Model& model) {
  const v1::LanguageModelHyperparameters& hyperparameters = model.language_model();
  const v1::Limits& limits = model.limits();
  return {
      {"vocabulary", absl::StrCat(model.vocabulary_size(), " tokens, ", model.tokenizer())},
      {"layers", absl::StrCat(hyperparameters.layers())},
      {"model width", absl::StrCat(hyperparameters.model_width())},
      {"heads", absl::StrCat(hyperparameters.heads())},
      {"feed-forward width", absl::StrCat(hyperparameters.feed_forward_width())},
      {"chunk", absl::StrCat(hyperparameters.chunk_size(), " tokens to ", hyperparameters.chunk_rank(), " vectors")},
      {"window", absl::StrCat(hyperparameters.window_length(), " tokens")},
      {"memory", absl::StrCat(hyperparameters.memory_length(), " tokens")},
      {"segment", absl::StrCat(hyperparameters.segment_length(), " tokens")},
      {"prompt or document", AtMost(limits.prompt_tokens(), " tokens")},
      {"completion", AtMost(limits.max_tokens(), " tokens")},
      {"completions in a call", AtMost(limits.completions(), "")},
      {"documents in a call", AtMost(limits.inputs(), "")}};
}

// Returns the name of the problem type in config.json.
std::string ProblemText(const v1::ClassifierProperties& classifier) {
  switch (classifier.problem_type()) {
    case v1::PROBLEM_TYPE_MULTI_LABEL_CLASSIFICATION:
      return "multi_label_classification";
    case v1::PROBLEM_TYPE_REGRESSION:
      return "regression";
    default:
      return "single_label_classification";
  }
}

// Returns "3: daisy, rose, tulip", with the first kShown classes only.
std::string ClassesText(const v1::ClassifierProperties& classifier) {
  constexpr int kShown = 10;
  if (classifier.classes() == 0) return "none: an encoder without a head";
  if (classifier.labels().empty()) return absl::StrCat(classifier.classes(), ", unnamed");
  const int shown = std::min(classifier.labels_size(), kShown);
  std::string text =
      absl::StrCat(classifier.classes(), ": ",
                   absl::StrJoin(classifier.labels().begin(), classifier.labels().begin() + shown, ", "));
  if (shown < classifier.labels_size()) absl::StrAppend(&text, ", ... (--json lists all)");
  return text;
}

std::vector<TextRow> ClassifierRows(const v1::Model& model) {
  const v1::ClassifierProperties& classifier = model.classifier();
  const v1::Limits& limits = model.limits();
  std::vector<TextRow> rows = {{"takes", InputText(model)}};
  if (classifier.classes() > 0) rows.push_back({"problem type", ProblemText(classifier)});
  rows.push_back({"classes", ClassesText(classifier)});
  if (classifier.input() == v1::CLASSIFIER_INPUT_TEXT) {
    rows.push_back({"vocabulary", absl::StrCat(model.vocabulary_size(), " tokens, ", model.tokenizer())});
    rows.push_back({"document", AtMost(classifier.max_document_tokens(), " tokens")});
    rows.push_back({"documents in a call", AtMost(limits.inputs(), "")});
    rows.push_back({"documents in flight", AtMost(limits.window(), " for each stream")});
  } else {
    rows.push_back({"image", absl::StrCat(AtMost(limits.image_bytes(), " bytes, "), limits.image_pixels(), " pixels")});
    rows.push_back({"images in a call", AtMost(limits.images(), "")});
  }
  return rows;
}

// Writes one row for each property.
void WriteModel(const v1::Model& model, std::ostream& output) {
  std::vector<TextRow> rows = {{"name", model.name()},
                               {"version", absl::StrCat(model.version())},
                               {"architecture", model.architecture()},
                               {"fingerprint", model.fingerprint()},
                               {"precision", model.precision()},
                               {"parameters", absl::StrCat(model.parameters())}};
  const std::vector<TextRow> more = model.has_classifier() ? ClassifierRows(model) : LanguageModelRows(model);
  rows.insert(rows.end(), more.begin(), more.end());
  output << TextTable(rows);
}

class ModelsCommand final : public Command {
 public:
  ModelsCommand()
      : Command("models", "Show the models that the server has loaded",
                R"(Usage: longshort models [options]

Lists the models that the server has loaded: the input of each (text, pairs of texts, images), and a classifier's number of
classes. Standard error names the models that could not be loaded, with the reasons. With --model, shows the details of
one: hyperparameters, problem type, class names, limits, fingerprint.

Examples:
  longshort models
  longshort models --model=characters/1
  longshort models --json | jq -r .name
)") {}

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (!arguments.empty()) return UsageError("models takes no argument; use --model=NAME to show one model");
    std::ostream& output = context.terminal.output;
    if (context.options.model.empty()) {
      LS_ASSIGN_OR_RETURN(const v1::ListModelsResponse response, context.client.ListModels());
      if (context.options.json) {
        for (const v1::Model& model : response.models()) WriteJsonLine(model, output);
      } else {
        WriteList(response, output);
      }
      for (const v1::ModelFailure& failure : response.failures()) {
        context.terminal.error << "longshort: not loaded: " << failure.reason() << "\n";
      }
      return ExitCode::kOk;
    }
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (context.options.json) {
      WriteJsonLine(model, output);
    } else {
      WriteModel(model, output);
    }
    return ExitCode::kOk;
  }
};

}  // namespace

std::unique_ptr<Command> MakeModelsCommand() { return std::make_unique<ModelsCommand>(); }

}  // namespace longshort::client
