#define LONGSHORT_INSTRUCTION_SET baseline
#include "models/kernels/cpu/document_attention_body.h"
