#include "models/train/bfloat16_products.h"

#include "ATen/autocast_mode.h"

namespace longshort {

Bfloat16Products::Bfloat16Products(bool enabled)
    : enabled_(enabled), previous_type_(at::autocast::get_autocast_dtype(at::kCPU)) {
  if (!enabled_) return;
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::increment_nesting();
}

Bfloat16Products::~Bfloat16Products() {
  if (!enabled_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::set_autocast_dtype(at::kCPU, previous_type_);
}

}  // namespace longshort
