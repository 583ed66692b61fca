#define LONGSHORT_INSTRUCTION_SET avx2
#include "models/kernels/document_attention_body.h"
