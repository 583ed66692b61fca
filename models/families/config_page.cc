#include "models/families/config_page.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_stages.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"

namespace longshort::models {
namespace {

constexpr std::string_view kIntroduction =
    R"(# config.json

This page is the output of `longshort-server describe --fields`. Every model directory has a
`config.json` of one of four families, which the field `architecture` names. Every field of the
family is required, unless its meaning says "Absent". Unknown fields are refused.
`longshort-server describe DIR` reads a `config.json` and prints what the model costs.
)";

std::string Section(std::string_view title, std::string_view first_column, std::string_view text,
                    const std::vector<FieldDescription>& fields) {
  std::string section = absl::StrCat("\n## ", std::string(title), "\n\n", std::string(text), "\n\n| ",
                                     std::string(first_column), " | values | meaning |\n|---|---|---|\n");
  for (const FieldDescription& field : fields) {
    absl::StrAppend(&section, "| `", std::string(field.name), "` | ", field.values, " | ", std::string(field.help),
                    " |\n");
  }
  return section;
}

}  // namespace

std::string ConfigPage() {
  return absl::StrCat(
      std::string(kIntroduction),
      Section("Language model", "field", "The autoregressive Transformer-LS. Lengths are in tokens.",
              LanguageModelFields()),
      Section("Text classifier", "field",
              "The classifiers of Long Range Arena, and the\n"
              "[long-document encoder](models/long_document_encoder.md). Lengths are in tokens.",
              TextClassifierFields()),
      Section("ViL-LS", "field", "A classifier of images of one size.", VilFields()),
      Section("Stages of ViL-LS", "letter",
              "An architecture string has 3 or 4 stages with `_` between them. A stage is a list of letters, each\n"
              "with a number, with commas between them: `l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,...`.",
              VilStageAttributes()),
      Section("CvT\\*-LS", "field", "A classifier of images of any size, with 1 to 16 stages.", CvtFields()),
      Section("Preprocessing of images", "field", "The object `preprocessing` of ViL-LS and CvT\\*-LS.",
              ImagePreprocessingFields()),
      Section("Preprocessing of pixel sequences", "field",
              "The object `preprocessing` of a text classifier with the tokenizer `pixels`.", PixelSequenceFields()));
}

}  // namespace longshort::models
