#define LONGSHORT_INSTRUCTION_SET baseline
#include "models/kernels/document_attention_body.h"
