// `longshort models`: what the server has loaded.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/command.h"
#include "clients/cpp/json_lines.h"

namespace longshort {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces between them.
void WriteTable(const std::vector<Row>& rows, std::ostream& output) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const Row& row : rows) {
    for (size_t column = 0; column + 1 < row.size(); ++column) {
      output << absl::StrFormat("%-*s  ", static_cast<int>(widths[column]), row[column]);
    }
    output << row.back() << "\n";
  }
}

// One model a row.
void WriteList(const v1::ListModelsResponse& response, std::ostream& output) {
  std::vector<Row> rows = {
      {"NAME", "VERSION", "ARCHITECTURE", "PARAMETERS", "PRECISION", "TOKENIZER", "VOCABULARY", "MEMORY"}};
  for (const v1::Model& model : response.models()) {
    rows.push_back({model.name(), absl::StrCat(model.version()), model.architecture(), absl::StrCat(model.parameters()),
                    model.precision(), model.tokenizer(), absl::StrCat(model.vocabulary_size()),
                    absl::StrCat(model.language_model().memory_length())});
  }
  WriteTable(rows, output);
}

// One property a row.
void WriteModel(const v1::Model& model, std::ostream& output) {
  const v1::LanguageModelHyperparameters& hyperparameters = model.language_model();
  const v1::Limits& limits = model.limits();
  WriteTable(
      {{"name", model.name()},
       {"version", absl::StrCat(model.version())},
       {"architecture", model.architecture()},
       {"fingerprint", model.fingerprint()},
       {"precision", model.precision()},
       {"parameters", absl::StrCat(model.parameters())},
       {"vocabulary", absl::StrCat(model.vocabulary_size(), " tokens, ", model.tokenizer())},
       {"layers", absl::StrCat(hyperparameters.layers())},
       {"model width", absl::StrCat(hyperparameters.model_width())},
       {"heads", absl::StrCat(hyperparameters.heads())},
       {"feed-forward width", absl::StrCat(hyperparameters.feed_forward_width())},
       {"chunk", absl::StrCat(hyperparameters.chunk_size(), " tokens to ", hyperparameters.chunk_rank(), " vectors")},
       {"window", absl::StrCat(hyperparameters.window_length(), " tokens")},
       {"memory", absl::StrCat(hyperparameters.memory_length(), " tokens")},
       {"segment", absl::StrCat(hyperparameters.segment_length(), " tokens")},
       {"prompt or document", absl::StrCat("at most ", limits.prompt_tokens(), " tokens")},
       {"completion", absl::StrCat("at most ", limits.max_tokens(), " tokens")},
       {"completions in a call", absl::StrCat("at most ", limits.completions())},
       {"documents in a call", absl::StrCat("at most ", limits.inputs())}},
      output);
}

class ModelsCommand final : public Command {
 public:
  absl::string_view name() const override { return "models"; }
  absl::string_view summary() const override { return "Show what the server has loaded"; }
  absl::string_view description() const override {
    return R"(Usage: longshort models [options]

Lists the models that the server has loaded. With --model, tells all about one: hyperparameters, limits, fingerprint.

Examples:
  longshort models
  longshort models --model=characters/1
  longshort models --json | jq -r .name
)";
  }
  void AddOptions(OptionTable& /*table*/) override {}

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (!arguments.empty())
      return FailUsage(context.terminal, "models takes no argument; --model=NAME tells of one model");
    return context.options.model.empty() ? List(context) : Describe(context);
  }

 private:
  static ExitCode List(const CommandContext& context) {
    const absl::StatusOr<v1::ListModelsResponse> response = context.client.ListModels();
    if (!response.ok()) return FailCall(context, response.status());
    if (context.options.json) {
      for (const v1::Model& model : response->models()) WriteJsonLine(model, context.terminal.output);
    } else {
      WriteList(*response, context.terminal.output);
    }
    return ExitCode::kOk;
  }

  static ExitCode Describe(const CommandContext& context) {
    v1::GetModelRequest request;
    *request.mutable_model() = context.model;
    const absl::StatusOr<v1::Model> model = context.client.GetModel(request);
    if (!model.ok()) return FailCall(context, model.status());
    if (context.options.json) {
      WriteJsonLine(*model, context.terminal.output);
    } else {
      WriteModel(*model, context.terminal.output);
    }
    return ExitCode::kOk;
  }
};

}  // namespace

std::unique_ptr<Command> MakeModelsCommand() { return std::make_unique<ModelsCommand>(); }

}  // namespace longshort
