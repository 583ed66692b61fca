#define LONGSHORT_INSTRUCTION_SET avx2
#include "models/kernels/causal_attention_body.h"
