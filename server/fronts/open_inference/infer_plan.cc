#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/infer.h"
#include "server/fronts/open_inference/input_tensors.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/open_inference/parameters.h"

namespace longshort::server {
namespace {

constexpr char kEmptyFinalAnswer[] = "triton_enable_empty_final_response";

// Parameters that every request may have. Some are for other servers or for HTTP, and are ignored here.
constexpr SchemaField kCommonParameters[] = {
    {"timeout", "integer", "The call's deadline, in microseconds."},
    {"priority", "integer", "1 (high), 2 (normal) or 3 (low)."},
    {"sequence_id", "any", "Not supported: requests are independent."},
    {"sequence_start", "any", "Not supported."},
    {"sequence_end", "any", "Not supported."},
    {kEmptyFinalAnswer, "boolean", "Whether a stream ends with an empty answer."},
    {"binary_data_output", "boolean", "Whether outputs come behind the JSON."}};
constexpr SchemaField kTruncate = {"truncate", "boolean", "Cuts a document that is too long at its end."};

absl::Status RefuseUnknown(const Parameters& parameters, absl::Span<const SchemaField> of_model) {
  if (parameters.empty()) return absl::OkStatus();  // the usual case
  std::vector<SchemaField> known(of_model.begin(), of_model.end());
  known.insert(known.end(), std::begin(kCommonParameters), std::end(kCommonParameters));
  return parameters.RefuseUnknown(known);
}

absl::Status ReadTimeout(const Parameters& parameters, CallRecord& record) {
  LS_ASSIGN_OR_RETURN(const std::optional<int64_t> microseconds, parameters.Integer("timeout"));
  if (!microseconds.has_value() || *microseconds == 0) return absl::OkStatus();
  if (*microseconds < 0) return FieldError("parameters.timeout", *microseconds, "at least 0 (microseconds)");
  record.EndWithin(absl::Microseconds(*microseconds));
  return absl::OkStatus();
}

absl::Status ReadPriority(const Parameters& parameters, CallRecord& record) {
  LS_ASSIGN_OR_RETURN(const std::optional<uint64_t> level, parameters.Unsigned("priority"));
  switch (level.value_or(0)) {
    case 0:
      return absl::OkStatus();
    case 1:
      return record.SetPriority(core::Priority::kHigh);
    case 2:
      return record.SetPriority(core::Priority::kNormal);
    case 3:
      return record.SetPriority(core::Priority::kLow);
    default:
      return FieldError("parameters.priority", *level, "1 (high), 2 (normal), 3 (low) or 0 (the call's priority)");
  }
}

absl::Status RefuseSequence(const Parameters& parameters) {
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end"}) {
    if (!parameters.Has(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameters.", name,
                     " is set; models do not take sequences: requests are independent; for conversations use the "
                     "sessions of longshort.v1"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadClassCount(const inference::ModelInferRequest::InferRequestedOutputTensor& tensor,
                                       Output output) {
  const Parameters parameters(tensor.parameters(), absl::StrCat("the parameters of output ", Quoted(tensor.name())));
  for (const auto& [name, value] : tensor.parameters()) {
    if (!absl::StartsWith(name, "shared_memory")) continue;
    return absl::InvalidArgumentError(absl::StrCat("output ", Quoted(tensor.name()), " has the parameter ",
                                                   Quoted(name),
                                                   "; shared memory is not supported: outputs come in the answer"));
  }
  LS_ASSIGN_OR_RETURN(const std::optional<int64_t> count, parameters.Integer("classification"));
  if (!count.has_value()) return 0;
  if (*count < 1) return FieldError("parameters.classification of output " + tensor.name(), *count, "at least 1");
  if (output == Output::kLogits || output == Output::kProbabilities) return *count;
  return FieldError("parameters.classification of output " + tensor.name(), *count,
                    "unset, because the output has no classes");
}

// The requested outputs; empty if the request names none.
absl::StatusOr<std::vector<RequestedOutput>> ReadOutputs(const inference::ModelInferRequest& request,
                                                         const ModelTensors& tensors, const std::string& model) {
  std::vector<RequestedOutput> outputs;
  for (const auto& tensor : request.outputs()) {
    const auto found = std::find_if(tensors.outputs.begin(), tensors.outputs.end(),
                                    [&](const OutputDescription& known) { return known.tensor.name == tensor.name(); });
    if (found == tensors.outputs.end()) {
      const auto append = [](std::string* known, const OutputDescription& one) { known->append(one.tensor.name); };
      return absl::InvalidArgumentError(absl::StrCat("output ", Quoted(tensor.name()), " is unknown; model ", model,
                                                     " has ", absl::StrJoin(tensors.outputs, ", ", append)));
    }
    const bool twice = std::any_of(outputs.begin(), outputs.end(),
                                   [&](const RequestedOutput& one) { return one.output == found->output; });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quoted(tensor.name()), " is requested twice; request it once"));
    }
    LS_ASSIGN_OR_RETURN(const int64_t count, ReadClassCount(tensor, found->output));
    outputs.push_back({.output = found->output, .class_count = count});
  }
  return outputs;
}

// The options of the call that produce these outputs.
ClassOptions ClassOptionsOf(const std::vector<RequestedOutput>& outputs) {
  ClassOptions options{.top_k = 1};
  for (const RequestedOutput& one : outputs) {
    options.top_k = std::max(options.top_k, one.class_count);
    if (one.output == Output::kLogits) options.all_logits = true;
    if (one.output == Output::kProbabilities && one.class_count == 0) options.all_probabilities = true;
    if (one.output == Output::kEmbedding) options.features = true;
  }
  return options;
}

class Planner {
 public:
  Planner(InferPlan& plan, const InputTensors& inputs, const Parameters& parameters, const core::ServedModel& model,
          const RequestLimits& limits)
      : plan_(plan), inputs_(inputs), parameters_(parameters), model_(model), limits_(limits) {}

  absl::Status PlanClassifier(const core::ServedClassifier& classifier, const ModelReference& reference) const {
    if (plan_.form.outputs.empty()) {
      plan_.form.outputs = {{Output::kLogits}, {Output::kProbabilities}};
      if (classifier.info.classes == 0) plan_.form.outputs = {{Output::kEmbedding}};
    }
    const ClassOptions options = ClassOptionsOf(plan_.form.outputs);
    if (classifier.info.input == models::ClassifierInput::kText) return PlanDocuments(classifier, reference, options);
    LS_RETURN_IF_ERROR(RefuseUnknown(parameters_, {}));
    LS_RETURN_IF_ERROR(CheckInputs({kImageInput}, {kImageInput}));
    LS_ASSIGN_OR_RETURN(std::vector<ImageInput> images, inputs_.Images(kImageInput, limits_.images));
    plan_.call = ClassifyCall{.model = reference, .images = std::move(images), .options = options};
    return absl::OkStatus();
  }

  absl::Status PlanLanguageModel(const core::ServedLanguageModel& model, const ModelReference& reference) const {
    LS_RETURN_IF_ERROR(inputs_.RefuseOthers({kPromptInput, kDocumentInput}, model_.name));
    if (inputs_.Has(kPromptInput) == inputs_.Has(kDocumentInput)) {
      return absl::InvalidArgumentError(
          absl::StrCat("model ", model_.name,
                       " takes either the input prompt, to continue, or the input document, to score; the request has ",
                       inputs_.Has(kPromptInput) ? "both" : "neither"));
    }
    return inputs_.Has(kPromptInput) ? PlanGeneration(model, reference) : PlanScoring(reference);
  }

 private:
  absl::Status CheckInputs(absl::Span<const std::string_view> known, absl::Span<const std::string_view> needed) const {
    LS_RETURN_IF_ERROR(inputs_.RefuseOthers(known, model_.name));
    for (const std::string_view name : needed) {
      if (inputs_.Has(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the input ", std::string(name), " is missing; model ", model_.name, " needs it"));
    }
    return absl::OkStatus();
  }

  absl::Status PlanDocuments(const core::ServedClassifier& classifier, const ModelReference& reference,
                             const ClassOptions& options) const {
    LS_RETURN_IF_ERROR(RefuseUnknown(parameters_, {kTruncate}));
    ScoreCall call{.model = reference, .options = {.classes = options}};
    LS_ASSIGN_OR_RETURN(const std::optional<bool> truncate, parameters_.Boolean("truncate"));
    call.options.truncate = truncate.value_or(false);
    const bool has_second = classifier.info.joins_pairs && inputs_.Has(kSecondDocumentInput);
    if (classifier.info.documents == 2 || has_second) {
      LS_RETURN_IF_ERROR(CheckInputs({kDocumentInput, kSecondDocumentInput}, {kDocumentInput, kSecondDocumentInput}));
      LS_ASSIGN_OR_RETURN(call.second_texts, inputs_.Texts(kSecondDocumentInput, limits_.inputs, &plan_.second_ids));
    } else {
      LS_RETURN_IF_ERROR(CheckInputs({kDocumentInput}, {kDocumentInput}));
    }
    LS_ASSIGN_OR_RETURN(call.texts, inputs_.Texts(kDocumentInput, limits_.inputs, &plan_.ids));
    plan_.call = std::move(call);
    return absl::OkStatus();
  }

  absl::Status PlanScoring(const ModelReference& reference) const {
    if (plan_.form.outputs.empty()) {
      plan_.form.outputs = {{Output::kLogLikelihood}, {Output::kTokenCount}, {Output::kScoredTokenCount}};
    }
    LS_RETURN_IF_ERROR(RefuseUnknown(parameters_, {}));
    ScoreCall call{.model = reference};
    LS_ASSIGN_OR_RETURN(call.texts, inputs_.Texts(kDocumentInput, limits_.inputs, &plan_.ids));
    plan_.call = std::move(call);
    return absl::OkStatus();
  }

  absl::Status PlanGeneration(const core::ServedLanguageModel& model, const ModelReference& reference) const {
    if (plan_.form.outputs.empty()) {
      plan_.form.outputs = {{model.tokenizer != nullptr ? Output::kText : Output::kTokenIds}, {Output::kFinishReason}};
    }
    LS_RETURN_IF_ERROR(RefuseUnknown(parameters_, GenerationParameterFields()));
    LS_ASSIGN_OR_RETURN(GenerateCall call, ReadGenerationParameters(parameters_));
    call.model = reference;
    LS_ASSIGN_OR_RETURN(const std::vector<TextInput> prompts, inputs_.Texts(kPromptInput, limits_.inputs, &plan_.ids));
    if (prompts.size() > 1) {
      return FieldError("number of prompts", prompts.size(), "1; send the others as separate requests");
    }
    call.prompts = prompts;
    if (model.tokenizer == nullptr && call.completions > 1) {
      return FieldError("parameters.completions", call.completions,
                        "1, because the model has no vocabulary, and token_ids is one list");
    }
    plan_.call = std::move(call);
    return absl::OkStatus();
  }

  InferPlan& plan_;
  const InputTensors& inputs_;
  const Parameters& parameters_;
  const core::ServedModel& model_;
  const RequestLimits& limits_;
};

}  // namespace

std::vector<SchemaField> InferenceParameterFields() {
  std::vector<SchemaField> fields = GenerationParameterFields();
  fields.push_back(kTruncate);
  fields.insert(fields.end(), std::begin(kCommonParameters), std::end(kCommonParameters));
  return fields;
}

absl::StatusOr<ModelReference> ReferenceOf(const std::string& name, const std::string& version,
                                           const CallNames& names) {
  ModelReference reference{.name = name};
  if (version.empty()) return reference;
  if (absl::SimpleAtoi(version, &reference.version) && reference.version >= 1) return reference;
  return FieldError(names.Of("model.version"), Quoted(version),
                    "a whole number of at least 1, or empty for the newest");
}

absl::StatusOr<InferPlan> PlanInfer(CallRecord& record, inference::ModelInferRequest request) {
  LS_RETURN_IF_ERROR(CheckFieldRange([] { return std::string("number of bytes of id"); },
                                     static_cast<int64_t>(request.id().size()), 0, kMaxRequestIdBytes));
  LS_ASSIGN_OR_RETURN(const ModelReference reference,
                      ReferenceOf(request.model_name(), request.model_version(), record.names()));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedModel> model, record.FindModel(reference));
  if (HasRawBinaryInput(request)) {
    LS_RETURN_IF_ERROR(DescribeRawBinaryInput(TensorsOf(*model, record.environment().limits), model->name, request));
  }
  InferPlan plan;
  auto kept = std::make_shared<const inference::ModelInferRequest>(std::move(request));
  plan.request = kept;
  plan.form.id = kept->id();

  const Parameters parameters(kept->parameters(), "parameters");
  if (!kept->parameters().empty()) {
    LS_RETURN_IF_ERROR(RefuseSequence(parameters));
    LS_RETURN_IF_ERROR(ReadTimeout(parameters, record));
    LS_RETURN_IF_ERROR(ReadPriority(parameters, record));
    LS_ASSIGN_OR_RETURN(const std::optional<bool> empty_final, parameters.Boolean(kEmptyFinalAnswer));
    plan.empty_final_answer = empty_final.value_or(false);
  }
  if (!kept->outputs().empty()) {
    const ModelTensors tensors = TensorsOf(*model, record.environment().limits);
    LS_ASSIGN_OR_RETURN(plan.form.outputs, ReadOutputs(*kept, tensors, model->name));
  }
  LS_ASSIGN_OR_RETURN(const InputTensors inputs, InputTensors::Read(*kept));
  plan.form.raw = inputs.raw();

  const Planner planner(plan, inputs, parameters, *model, record.environment().limits);
  if (const core::ServedLanguageModel* language_model = model->language_model(); language_model != nullptr) {
    LS_RETURN_IF_ERROR(planner.PlanLanguageModel(*language_model, reference));
  } else {
    LS_RETURN_IF_ERROR(planner.PlanClassifier(*model->classifier(), reference));
  }
  return plan;
}

}  // namespace longshort::server
