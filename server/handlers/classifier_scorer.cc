#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "models/tokenizer/tokenizers.h"
#include "server/calls/call_names.h"
#include "server/handlers/item_answer.h"
#include "server/handlers/text_reader.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {
namespace {

using models::DocumentBeginning;

// `max`: tokens of the document, or of the pair, whose `name` this is.
absl::Status CheckTokens(std::string_view name, int64_t tokens, int64_t max, bool truncate, const CallNames& names) {
  if (tokens <= max || truncate) return absl::OkStatus();
  return FieldError(
      absl::StrCat("number of tokens of ", std::string(name)), tokens,
      absl::StrCat("in [1, ", max, "] (more with ", names.Of("truncate"), ", which reads the first ", max, ")"));
}

// Errors: INVALID_ARGUMENT unless the ids of `name` begin as those of every text of the model do. Ids of another
// tokenizer would give a meaningless result.
absl::Status CheckFirst(const core::ServedClassifier& model, int32_t id, const std::string& name) {
  if (model.tokenizer == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const DocumentBeginning begin, model.tokenizer->EncodeBeginning("", 1));
  if (begin.ids.empty() || id == begin.ids.front()) return absl::OkStatus();
  return FieldError(
      absl::StrCat("the first id of ", name), id,
      absl::StrCat(begin.ids.front(), " (", std::string(model.tokenizer->Decode(begin.ids.front())),
                   "), as in the ids that Tokenize returns; send ids of this model's tokenizer, or text"));
}

// Errors: INVALID_ARGUMENT if a pair, longer than `max` together, cannot be truncated to it.
absl::Status CheckPair(int64_t max, std::string_view name, const DocumentBeginning& first,
                       const DocumentBeginning& second) {
  constexpr int64_t kBeginAndEnd = 2;
  if (max >= 2 * kBeginAndEnd && std::min(first.tokens, second.tokens) >= kBeginAndEnd) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), " cannot be truncated to ", max,
                                                 " tokens: each keeps its first and its last token"));
}

// Converts the documents of an item to token ids, and truncates them. Returns them with their readings. With
// `truncate`, a long document keeps its first max_document_tokens tokens. A model that joins pairs keeps a document's
// last token, `</s>`, too, and truncates a pair by Hugging Face's rule longest_first. REQUIRES: the model accepts as
// many documents. Errors: those of ReadBeginning; INVALID_ARGUMENT for padding alone, and for documents that are too
// long.
absl::StatusOr<TextToScore> ReadDocuments(const core::ServedClassifier& model, bool truncate, const CallNames& names,
                                          absl::Span<const NamedText> documents) {
  const models::ClassifierInfo& info = model.info;
  const int64_t max = info.max_document_tokens;
  absl::InlinedVector<DocumentBeginning, 2> read;
  for (const NamedText& named : documents) {
    // The last id of a sequence is kept, so ids are read to their end.
    const bool to_end = info.joins_pairs && named.input.kind == TextInput::Kind::kIds;
    LS_ASSIGN_OR_RETURN(DocumentBeginning document,
                        ReadBeginning(named, names, model, to_end ? std::numeric_limits<int64_t>::max() : max));
    if (to_end) LS_RETURN_IF_ERROR(CheckFirst(model, document.ids.front(), names.Of(named.path)));
    read.push_back(std::move(document));
  }
  std::array<int64_t, 2> limits = {max, max};  // of each document's ids
  if (info.joins_pairs && read.size() == 2) {
    const std::string name = absl::StrCat(names.Of(documents[0].path), " and ", names.Of(documents[1].path));
    const int64_t tokens = read[0].tokens + read[1].tokens;
    LS_RETURN_IF_ERROR(CheckTokens(name, tokens, max, truncate, names));
    if (tokens > max) {
      LS_RETURN_IF_ERROR(CheckPair(max, name, read[0], read[1]));
      std::tie(limits[0], limits[1]) = models::KeptOfPair(read[0].tokens, read[1].tokens, max);
    }
  }
  TextToScore text;
  for (size_t i = 0; i < read.size(); ++i) {
    std::vector<int32_t>& ids = read[i].ids;
    LS_RETURN_IF_ERROR(CheckTokens(names.Of(documents[i].path), read[i].tokens, max, truncate, names));
    if (static_cast<int64_t>(ids.size()) > limits[i]) {
      const int32_t last = ids.back();
      ids.resize(limits[i]);
      ids.back() = last;
    }
    if (std::all_of(ids.begin(), ids.end(), [&info](int32_t id) { return id == info.padding_id; })) {
      return absl::InvalidArgumentError(absl::StrCat(names.Of(documents[i].path), " is padding (id ", info.padding_id,
                                                     ") alone; it must have at least one other token"));
    }
    ids.shrink_to_fit();
    const auto kept = static_cast<int64_t>(ids.size());
    text.readings.push_back({.token_count = kept, .truncated = kept < read[i].tokens});
    text.documents.push_back(std::move(ids));
  }
  return text;
}

// Scores texts with a classifier. What the model computes for a text, and the answer that it becomes, differ.
class ClassifierScorer : public TextScorer {
 public:
  absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                   std::optional<int64_t> index) const override {
    if (second.has_value() ? !takes_pairs_ && !info().joins_pairs : takes_pairs_) {
      return absl::InvalidArgumentError(absl::StrCat(
          names_.Of(SecondOf(index)),
          takes_pairs_ ? " is unset; it must be set, because the model takes two documents"
                       : absl::StrCat(" is set; it must be unset, because the model ", no_pairs_because())));
    }
    absl::InlinedVector<NamedText, 2> documents = {{.input = first, .path = FirstOf(index)}};
    if (second.has_value()) documents.push_back({.input = *second, .path = SecondOf(index)});
    return ReadDocuments(*model_, truncate_, names_, documents);
  }

  absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const override {
    core::ClassificationRequest request;
    request.context = context;
    request.output = output_;
    request.bytes = text.tokens() * static_cast<int64_t>(sizeof(int32_t));
    auto listener = std::make_shared<Listener>(*this, text, std::move(done));
    request.item = models::ClassifierItem(models::TokenItem{.documents = std::move(text.documents)});
    return model_->engine->Classify(std::move(request), std::move(listener));
  }

 protected:
  ClassifierScorer(std::shared_ptr<const core::ServedClassifier> model, models::ClassifierOutput output,
                   bool takes_pairs, bool truncate, const CallNames& names)
      : model_(std::move(model)), output_(output), takes_pairs_(takes_pairs), truncate_(truncate), names_(names) {}

  const models::ClassifierInfo& info() const { return model_->info; }
  const CallNames& names() const { return names_; }

 private:
  class Listener final : public core::ClassificationListener {
   public:
    Listener(const ClassifierScorer& scorer, TextToScore& text, Done done)
        : scorer_(scorer), tokens_(text.tokens()), done_(std::move(done)), readings_(std::move(text.readings)) {}

    void OnFinished(absl::StatusOr<core::ItemResult> result) override {
      if (!result.ok()) return done_(result.status());
      done_(ScoredText{.result = scorer_.ResultOf(*std::move(result), std::move(readings_)), .tokens = tokens_});
    }

   private:
    const ClassifierScorer& scorer_;
    const int64_t tokens_;
    const Done done_;
    std::vector<DocumentReading> readings_;
  };

  // Completes "second_input must be unset, because the model ...".
  virtual const char* no_pairs_because() const = 0;
  // Called on the engine's thread.
  virtual TextResult ResultOf(core::ItemResult result, std::vector<DocumentReading> readings) const = 0;

  const std::shared_ptr<const core::ServedClassifier> model_;
  const models::ClassifierOutput output_;
  const bool takes_pairs_;
  const bool truncate_;
  const CallNames& names_;
};

class ClassScorer final : public ClassifierScorer {
 public:
  ClassScorer(const std::shared_ptr<const core::ServedClassifier>& model, const ClassOptions& classes, bool truncate,
              const CallNames& names)
      : ClassifierScorer(model, OutputOf(classes), model->info.documents == 2, truncate, names), classes_(classes) {}

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * MaxBytes(classes_, info()); }
  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/, int64_t max_bytes) const override {
    return server::CheckAnswerFits(classes_, info(), texts, max_bytes, names());
  }

 private:
  const char* no_pairs_because() const override { return "takes one document"; }
  TextResult ResultOf(core::ItemResult result, std::vector<DocumentReading> readings) const override {
    return TextClassification{.classification = AnswerOf(std::move(result), classes_, info()),
                              .documents = std::move(readings)};
  }

  const ClassOptions classes_;
};

class EmbeddingScorer final : public ClassifierScorer {
 public:
  EmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model, models::ClassifierOutput output,
                  const EmbedOptions& options, const CallNames& names)
      : ClassifierScorer(std::move(model), output, false, options.truncate, names), normalize_(options.normalize) {}

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * MaxEmbeddingBytes(info()); }
  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/, int64_t max_bytes) const override {
    return CheckEmbeddingsFit(info(), texts, max_bytes);
  }

 private:
  const char* no_pairs_because() const override { return "embeds each document by itself"; }
  TextResult ResultOf(core::ItemResult result, std::vector<DocumentReading> readings) const override {
    Embedding embedding = EmbeddingOf(std::move(result), normalize_);
    embedding.documents = std::move(readings);
    return embedding;
  }

  const bool normalize_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassScorer(const std::shared_ptr<const core::ServedClassifier>& model,
                                                            const ScoreOptions& options, const CallNames& names) {
  LS_ASSIGN_OR_RETURN(const ClassOptions classes, ReadClassAnswer(options.classes, model->info, names));
  return std::make_unique<ClassScorer>(model, classes, options.truncate, names);
}

absl::StatusOr<std::unique_ptr<TextScorer>> MakeEmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                                const EmbedOptions& options, const CallNames& names) {
  LS_ASSIGN_OR_RETURN(const models::ClassifierOutput output, OutputOf(options.pooling, model->info, names));
  return std::make_unique<EmbeddingScorer>(std::move(model), output, options, names);
}

}  // namespace longshort::server
