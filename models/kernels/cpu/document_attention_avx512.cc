#define LONGSHORT_INSTRUCTION_SET avx512
#include "models/kernels/cpu/document_attention_body.h"
