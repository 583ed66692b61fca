// What a call's trace tells of what was asked. Never texts, images, stop strings or sessions.
#pragma once

#include "core/registry/served_model.h"
#include "server/admission/call_record.h"
#include "server/calls/generate_call.h"
#include "server/handlers/generation_plan.h"

namespace longshort {

// gen_ai.operation.name: OpenTelemetry's own for generations; it has none for what else is done here.
inline constexpr char kGenerationOperation[] = "text_completion";
inline constexpr char kScoringOperation[] = "score";
inline constexpr char kClassificationOperation[] = "classify";

// Of texts, by what the model is.
inline const char* OperationOfTexts(const ServedModel& model) {
  return model.language_model() != nullptr ? kScoringOperation : kClassificationOperation;
}

void TraceGeneration(CallRecord& record, const GenerateCall& call, const GenerationPlan& plan);

}  // namespace longshort
