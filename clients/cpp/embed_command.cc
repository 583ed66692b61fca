// `longshort embed`: vectors of images or texts.
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/image_run.h"
#include "clients/cpp/npy_file.h"
#include "clients/cpp/text_run.h"

namespace longshort::client {
namespace {

class EmbedCommand final : public Command {
 public:
  EmbedCommand()
      : Command("embed", "Embed images or texts: compute a vector for each",
                R"(Usage: longshort embed [options] [FILE|FOLDER|PATTERN|-]...

Computes a vector for each image or text with a classifier: by default what the model's head reads. The model determines whether
the files are images or texts: see "longshort models".

Arguments, and options for texts, are those of "longshort classify". The output has one line of JSON for each item, in the order
of the files: {"name": ..., "model": ..., "fingerprint": ..., "precision": ..., "values": [...], ...} with the fields of Embedding,
or {"name": ..., "error": {...}}. With --npy, a NumPy file gets the vectors instead: float32 of shape [items, width], with a row
of NaN for an item that failed, which is reported by name. A model that joins two documents embeds pairs, too; one that compares
them embeds each by itself.

If an item cannot be read or embedded, the program continues with the others, and the exit code is that of "longshort classify".

Examples:
  longshort embed --model=languages letter.txt
  longshort embed --model=languages --normalize --lines --npy=lines.npy lines.txt
  longshort embed --model=flowers --npy=photos.npy photos
)") {}

  void AddOptions(OptionTable& table) override {
    table.Add("pooling", "NAME",
              "cls: the CLS token's row; mean: the mean of all tokens' rows. By default, what the model's head reads.",
              &pooling_);
    table.AddSwitch("normalize", "Divide each vector by its length.", &normalize_);
    table.Add("npy", "FILE", "Write the vectors to this NumPy file.", &npy_);
    texts_.AddForClassifiersTo(table);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    LS_RETURN_IF_ERROR(texts_.Check());
    if (!pooling_.empty() && PoolingOf(pooling_) == v1::POOLING_UNSPECIFIED) {
      return UsageError(absl::StrCat("--pooling is \"", pooling_, "\"; it must be cls or mean"));
    }
    LS_ASSIGN_OR_RETURN(const v1::Model model, context.client.GetModel(context.model));
    if (!model.has_classifier()) {
      return absl::FailedPreconditionError(absl::StrCat(model.name(), " is a language model, which does not embed"));
    }
    if (model.classifier().embedding_width() == 0) {
      return absl::FailedPreconditionError("the server is older than embeddings");
    }
    if (model.classifier().input() == v1::CLASSIFIER_INPUT_TEXT) {
      LS_ASSIGN_OR_RETURN(TextFiles files, CollectTexts(texts_, arguments, model, /*embeds=*/true));
      return WithNpy(model, [&](NpyFile* npy) { return EmbedTexts(std::move(files), model, npy, context); });
    }
    LS_ASSIGN_OR_RETURN(CollectedFiles files, CollectImages(texts_, arguments, model, context));
    return WithNpy(model, [&](NpyFile* npy) { return EmbedImages(std::move(files), model, npy, context); });
  }

 private:
  // POOLING_UNSPECIFIED for an unknown name.
  static v1::Pooling PoolingOf(const std::string& name) {
    return name == "cls" ? v1::POOLING_CLS : name == "mean" ? v1::POOLING_MEAN : v1::POOLING_UNSPECIFIED;
  }

  // Calls `embed` with the file of --npy, or nullptr.
  absl::StatusOr<ExitCode> WithNpy(const v1::Model& model,
                                   absl::FunctionRef<absl::StatusOr<ExitCode>(NpyFile*)> embed) const {
    if (npy_.empty()) return embed(nullptr);
    LS_ASSIGN_OR_RETURN(NpyFile npy, AsUsage(NpyFile::Create(npy_, model.classifier().embedding_width())));
    absl::StatusOr<ExitCode> code = embed(&npy);
    LS_RETURN_IF_ERROR(npy.Finish());
    return code;
  }

  absl::StatusOr<ExitCode> EmbedTexts(TextFiles files, const v1::Model& model, NpyFile* npy,
                                      const CommandContext& context) const {
    v1::ScoreTextsOptions request;
    request.mutable_embedding()->set_pooling(PoolingOf(pooling_));
    request.mutable_embedding()->set_normalize(normalize_);
    TextRunOptions options = texts_;
    options.npy = npy;
    return RunTexts(options, model, std::move(request), std::move(files), context);
  }

  absl::StatusOr<ExitCode> EmbedImages(CollectedFiles files, const v1::Model& model, NpyFile* npy,
                                       const CommandContext& context) const {
    const auto call = [&](Images images) -> absl::StatusOr<std::vector<v1::ScoreTextsResponse>> {
      v1::EmbedRequest request;
      *request.mutable_model() = SelectorOf(model);
      request.set_pooling(PoolingOf(pooling_));
      request.set_normalize(normalize_);
      request.mutable_images()->Swap(&images);
      LS_ASSIGN_OR_RETURN(v1::EmbedResponse response, context.client.Embed(request));
      std::vector<v1::ScoreTextsResponse> answers;
      for (v1::EmbedResult& result : *response.mutable_results()) {
        v1::ScoreTextsResponse& answer = answers.emplace_back();
        *answer.mutable_model() = response.model();
        if (result.has_error()) {
          *answer.mutable_error() = std::move(*result.mutable_error());
        } else {
          *answer.mutable_embedding() = std::move(*result.mutable_embedding());
        }
      }
      return answers;
    };
    TextRunOptions options = texts_;
    options.npy = npy;
    const auto show = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
      WriteEmbedding(name, answer, model, options, context.terminal.output);
    };
    return RunImages(std::move(files), model,
                     {.json = npy == nullptr, .quiet = texts_.quiet, .call = call, .show = show}, context);
  }

  std::string pooling_;
  bool normalize_ = false;
  std::string npy_;
  TextRunOptions texts_;
};

}  // namespace

std::unique_ptr<Command> MakeEmbedCommand() { return std::make_unique<EmbedCommand>(); }

}  // namespace longshort::client
