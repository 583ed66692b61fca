#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/classifier_trainer.h"
#include "models/train/commands.h"
#include "models/train/trainable_text_classifier.h"
#include "models/train/training_options.h"

namespace longshort {
namespace {

struct CommandLine {
  ClassifierTrainerOptions trainer = DefaultClassifierOptions();
  TextTrainingFiles files;
  TextVariationOptions variation;
  bool help = false;
};

OptionTable MakeTable(CommandLine& line) {
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the model to train; it is written as it is. Required.",
            &line.files.config);
  table.Add("vocabulary", "FILE", "vocabulary.txt, for the ListOps tokenizers.", &line.files.vocabulary);
  table.Add("train", "FILE",
            "Labelled documents to train on, one JSON object a line: {\"label\": \"pos\", \"text\": \"...\"}, and "
            "\"second_text\" for models of two documents. The labels, sorted, are the classes. Required.",
            &line.files.train);
  table.Add("held-out", "FILE", "Labelled documents that are only measured, in the same form. Required.",
            &line.files.held_out);
  AddOutputOptions(table, line.trainer.output_directory, line.trainer.loop);
  table.BeginSection("Training:");
  AddLoopOptions(table, line.trainer.loop);
  AddClassifierOptions(table, line.trainer);
  table.Add("crop-tokens", "N", "Longer documents are trained on in random pieces of this length; 0: whole.",
            &line.variation.crop_tokens);
  table.Add("masked-tokens", "X", "Part of a document's tokens that is masked, other ones each time.",
            &line.variation.masked_tokens);
  AddHelpOption(table, line.help);
  return table;
}

}  // namespace

absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments) {
  CommandLine line;
  const OptionTable table = MakeTable(line);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (line.help) {
    absl::PrintF(
        "longshort-train text-classifier: trains a classifier of documents.\n\n"
        "  longshort-train text-classifier --config=config.json --train=train.jsonl --held-out=held_out.jsonl \\\n"
        "    --out=models/zoo/NAME/1 --steps=5000\n\n%s",
        table.Help());
    return absl::OkStatus();
  }
  LS_RETURN_IF_ERROR(
      CheckClassifierPaths(line.files.config, line.files.train, line.files.held_out, line.trainer.output_directory));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TrainableClassifier> classifier,
                      LoadTrainableTextClassifier(line.files, line.variation));
  return TrainClassifier(line.trainer, *classifier);
}

}  // namespace longshort
