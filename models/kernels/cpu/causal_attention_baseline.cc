#define LONGSHORT_INSTRUCTION_SET baseline
#include "models/kernels/cpu/causal_attention_body.h"
