#define LONGSHORT_INSTRUCTION_SET avx512
#include "models/kernels/document_attention_body.h"
