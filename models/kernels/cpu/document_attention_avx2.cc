#define LONGSHORT_INSTRUCTION_SET avx2
#include "models/kernels/cpu/document_attention_body.h"
