#define LONGSHORT_INSTRUCTION_SET avx2
#include "models/kernels/cpu/causal_attention_body.h"
