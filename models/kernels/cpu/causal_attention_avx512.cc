#define LONGSHORT_INSTRUCTION_SET avx512
#include "models/kernels/cpu/causal_attention_body.h"
