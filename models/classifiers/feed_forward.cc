#include "models/classifiers/feed_forward.h"

#include "ATen/Functions.h"

namespace longshort {

at::Tensor FeedForward::operator()(const at::Tensor& rows) const { return out(at::gelu(in(rows))); }

}  // namespace longshort
