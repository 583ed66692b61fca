#define LONGSHORT_INSTRUCTION_SET avx512
#include "models/kernels/causal_attention_body.h"
