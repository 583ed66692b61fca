#include "models/ops/document_attention/document_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(int64_t AttendDocumentScratchFloats(const DocumentHead& head);
                  int64_t DocumentGradientScratchFloats(const DocumentHead& head);
                  void AttendDocument(const DocumentHead& head, const DocumentOutput& output, float* scratch);
                  void DifferentiateDocument(const DocumentHead& head, const DocumentGradients& gradients,
                                             float* scratch);)

int64_t AttendDocumentScratchFloats(const DocumentHead& head) { return baseline::AttendDocumentScratchFloats(head); }

int64_t DocumentGradientScratchFloats(const DocumentHead& head) {
  return baseline::DocumentGradientScratchFloats(head);
}

void AttendDocument(const DocumentHead& head, const DocumentOutput& output, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, AttendDocument, head, output, scratch)
}

void DifferentiateDocument(const DocumentHead& head, const DocumentGradients& gradients, float* scratch,
                           InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateDocument, head, gradients, scratch)
}

}  // namespace longshort::models::cpu
