#define LONGSHORT_INSTRUCTION_SET baseline
#include "models/kernels/causal_attention_body.h"
