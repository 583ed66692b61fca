#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/classifier_trainer.h"
#include "models/train/commands.h"
#include "models/train/trainable_image_classifier.h"
#include "models/train/training_options.h"

namespace longshort {
namespace {

struct CommandLine {
  ClassifierTrainerOptions trainer = DefaultClassifierOptions();
  ImageTrainingFiles files;
  AugmentationOptions augmentation;
  bool help = false;
};

OptionTable MakeTable(CommandLine& line) {
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the CvT*-LS to train; it is written as it is. Required.",
            &line.files.config);
  table.Add("train", "DIR",
            "Images to train on: a folder for each class with JPEG, PNG or WebP files in it. The folders' "
            "names, sorted, are the classes. Required.",
            &line.files.train);
  table.Add("held-out", "DIR", "Images that are only measured, in the same form. Required.", &line.files.held_out);
  AddOutputOptions(table, line.trainer.output_directory, line.trainer.loop);
  table.BeginSection("Training:");
  AddLoopOptions(table, line.trainer.loop);
  AddClassifierOptions(table, line.trainer);
  table.Add("image-side", "N",
            "Pixels of a side of the images that are trained on; 0: those of the preprocessing's crop. Things look "
            "larger in random rectangles than in whole images, so a smaller side suits the size that is served.",
            &line.augmentation.side);
  table.Add("smallest-crop", "X", "Images are trained on in random rectangles of at least this part of their area.",
            &line.augmentation.smallest_crop);
  table.Add("colour-jitter", "X", "Brightness, contrast and saturation change at random by up to this part.",
            &line.augmentation.colour_jitter);
  table.Add("cutmix", "X", "Probability that a rectangle of an image, and of its target, comes from another one.",
            &line.augmentation.cutmix);
  table.AddSwitch("bfloat16-products",
                  "Multiply matrices in bfloat16; weights and sums stay float32. Slower on a processor without "
                  "instructions for it.",
                  &line.trainer.bfloat16_products);
  AddHelpOption(table, line.help);
  return table;
}

}  // namespace

absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments) {
  CommandLine line;
  const OptionTable table = MakeTable(line);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (line.help) {
    absl::PrintF(
        "longshort-train image-classifier: trains a CvT*-LS on labelled images.\n\n"
        "  longshort-train image-classifier --config=config.json --train=train --held-out=held_out \\\n"
        "    --out=models/zoo/NAME/1 --steps=5000\n\n%s",
        table.Help());
    return absl::OkStatus();
  }
  LS_RETURN_IF_ERROR(
      CheckClassifierPaths(line.files.config, line.files.train, line.files.held_out, line.trainer.output_directory));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TrainableClassifier> classifier,
                      LoadTrainableImageClassifier(line.files, line.augmentation));
  return TrainClassifier(line.trainer, *classifier);
}

}  // namespace longshort
