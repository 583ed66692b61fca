#include "models/ops/layer_halves/layer_halves.h"

#include <vector>

#include "ATen/Functions.h"
#include "c10/core/GradMode.h"
#include "models/ops/layer_halves/layer_halves_kernels.h"
#include "models/ops/rows/cpu_kernels.h"
#include "torch/csrc/autograd/custom_function.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT_ANY(int64_t, BeforeAttentionScratchFloats, (const BeforeAttention& half), (half))
LONGSHORT_SELECT_ANY(int64_t, AfterAttentionScratchFloats, (const AfterAttention& half), (half))
LONGSHORT_SELECT(void, RunBeforeAttention,
                 (const BeforeAttention& half, const BeforeAttentionRows& rows, float* scratch), (half, rows, scratch))
LONGSHORT_SELECT(void, DifferentiateBeforeAttention,
                 (const BeforeAttention& half, const BeforeAttentionRows& rows, const BeforeAttentionGradient& gradient,
                  float* scratch),
                 (half, rows, gradient, scratch))
LONGSHORT_SELECT(void, RunAfterAttention, (const AfterAttention& half, const AfterAttentionRows& rows, float* scratch),
                 (half, rows, scratch))
LONGSHORT_SELECT(void, DifferentiateAfterAttention,
                 (const AfterAttention& half, const AfterAttentionRows& rows, const AfterAttentionGradient& gradient,
                  float* scratch),
                 (half, rows, gradient, scratch))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Autograd has no undefined inputs: what is absent has no elements.
at::Tensor OrEmpty(const at::Tensor& tensor, const at::Tensor& rows) {
  return tensor.defined() ? tensor : at::empty({0}, rows.options());
}

at::Tensor BiasOf(const Linear& map) {
  return map.bias.defined() ? map.bias : at::zeros({map.weight.size(0)}, map.weight.options().requires_grad(false));
}

const float* FloatsOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? tensor.const_data_ptr<float>() : nullptr;
}
float* MutableFloatsOf(const at::Tensor& tensor) {
  return tensor.numel() > 0 ? tensor.mutable_data_ptr<float>() : nullptr;
}

cpu::RowNorm TrainedNormOf(const at::Tensor& gain, const at::Tensor& bias, double epsilon) {
  return {.gain = FloatsOf(gain), .bias = FloatsOf(bias), .epsilon = static_cast<float>(epsilon)};
}

// `transposed`: undefined for gradients.
cpu::TrainedMap TrainedMapOf(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& transposed = {}) {
  return {.outputs = weight.size(0),
          .inputs = weight.size(1),
          .weight = FloatsOf(weight),
          .transposed = FloatsOf(transposed),
          .bias = FloatsOf(bias)};
}

at::Tensor Transposed(const at::Tensor& weight) { return weight.t().contiguous(); }

// The weights of queries, keys, values and projection as one map, whose last outputs are padding.
struct JoinedMap {
  at::Tensor weight, bias;

  JoinedMap(at::ArrayRef<at::Tensor> weights, at::ArrayRef<at::Tensor> biases) {
    std::vector<at::Tensor> rows(weights.begin(), weights.end()), sums(biases.begin(), biases.end());
    const int64_t logits = weights.back().size(0), padding = cpu::PaddedHeadWidth(logits) - logits;
    rows.push_back(at::zeros({padding, weights.back().size(1)}, weights.back().options()));
    sums.push_back(at::zeros({padding}, weights.back().options()));
    weight = at::cat(rows);
    bias = at::cat(sums);
  }
};

// The inputs: rows; gain and bias of norm; weight and bias of query, key, value and projection; gain and bias of
// window_norm.
class BeforeFunction final : public torch::autograd::Function<BeforeFunction> {
 public:
  static variable_list forward(AutogradContext* context, bool keeps_input, double epsilon, double window_epsilon,
                               const Variable& rows, const Variable& gain, const Variable& norm_bias,
                               const Variable& query, const Variable& query_bias, const Variable& key,
                               const Variable& key_bias, const Variable& value, const Variable& value_bias,
                               const Variable& projection, const Variable& projection_bias, const Variable& window_gain,
                               const Variable& window_bias) {
    const at::Tensor input = rows.contiguous();
    const JoinedMap map({query, key, value, projection}, {query_bias, key_bias, value_bias, projection_bias});
    const int64_t count = input.size(0), width = input.size(1), logits = projection.size(0);
    const auto rows_of = [&](int64_t columns) { return at::empty({count, columns}, input.options()); };
    const variable_list results = {rows_of(width),     rows_of(width),
                                   rows_of(width),     rows_of(logits),
                                   rows_of(2 * width), keeps_input ? rows_of(width) : at::empty({0}, input.options())};
    const at::Tensor transposed = Transposed(map.weight);
    const cpu::BeforeAttention half{.width = width,
                                    .logits = logits,
                                    .norm = TrainedNormOf(gain, norm_bias, epsilon),
                                    .map = TrainedMapOf(map.weight, map.bias, transposed),
                                    .window_norm = TrainedNormOf(window_gain, window_bias, window_epsilon)};
    std::vector<float> scratch(cpu::BeforeAttentionScratchFloats(half));
    cpu::RunBeforeAttention(half,
                            {.rows = count,
                             .input = FloatsOf(input),
                             .queries = MutableFloatsOf(results[0]),
                             .keys = MutableFloatsOf(results[1]),
                             .values = MutableFloatsOf(results[2]),
                             .logits = MutableFloatsOf(results[3]),
                             .raw = MutableFloatsOf(results[4]),
                             .normed = MutableFloatsOf(results[5])},
                            scratch.data());
    context->set_materialize_grads(false);
    context->save_for_backward({input, results[4], map.weight, map.bias, gain, norm_bias, window_gain, window_bias});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["window_epsilon"] = window_epsilon;
    context->saved_data["logits"] = logits;
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& given) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &raw = saved[1], &weight = saved[2];
    const int64_t width = input.size(1), logits = context->saved_data["logits"].toInt();
    variable_list gradients;
    for (const Variable& gradient : given) gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    for (const int of : {0, 1, 2}) {
      if (!gradients[of].defined()) gradients[of] = at::zeros_like(input);
    }
    if (!gradients[3].defined()) gradients[3] = at::zeros({input.size(0), logits}, input.options());
    const at::Tensor to_input = at::empty_like(input), to_weight = at::zeros_like(weight),
                     to_bias = at::zeros_like(saved[3]);
    const at::Tensor to_gain = at::zeros_like(saved[4]), to_norm_bias = at::zeros_like(saved[5]),
                     to_window_gain = at::zeros_like(saved[6]), to_window_bias = at::zeros_like(saved[7]);
    const cpu::BeforeAttention half{
        .width = width,
        .logits = logits,
        .norm = TrainedNormOf(saved[4], saved[5], context->saved_data["epsilon"].toDouble()),
        .map = TrainedMapOf(weight, saved[3]),
        .window_norm = TrainedNormOf(saved[6], saved[7], context->saved_data["window_epsilon"].toDouble())};
    std::vector<float> scratch(cpu::BeforeAttentionScratchFloats(half));
    cpu::DifferentiateBeforeAttention(
        half, {.rows = input.size(0), .input = FloatsOf(input), .raw = MutableFloatsOf(raw)},
        {.queries = FloatsOf(gradients[0]),
         .keys = FloatsOf(gradients[1]),
         .values = FloatsOf(gradients[2]),
         .logits = FloatsOf(gradients[3]),
         .raw = FloatsOf(gradients[4]),
         .normed = FloatsOf(gradients[5]),
         .input = MutableFloatsOf(to_input),
         .norm = {.gain = MutableFloatsOf(to_gain), .bias = MutableFloatsOf(to_norm_bias)},
         .window_norm = {.gain = MutableFloatsOf(to_window_gain), .bias = MutableFloatsOf(to_window_bias)},
         .map = {.weight = MutableFloatsOf(to_weight), .bias = MutableFloatsOf(to_bias)}},
        scratch.data());
    const std::vector<int64_t> outputs = {width, width, width, logits, weight.size(0) - 3 * width - logits};
    const std::vector<at::Tensor> weights = to_weight.split_with_sizes(outputs),
                                  biases = to_bias.split_with_sizes(outputs);
    return {Variable(), Variable(), Variable(), to_input,  to_gain,    to_norm_bias, weights[0],     biases[0],
            weights[1], biases[1],  weights[2], biases[2], weights[3], biases[3],    to_window_gain, to_window_bias};
  }
};

// The inputs: rows, attended; weight and bias of output; gain and bias of norm; weight and bias of in and of out.
class AfterFunction final : public torch::autograd::Function<AfterFunction> {
 public:
  static Variable forward(AutogradContext* context, bool normed_residual, double epsilon, const Variable& rows,
                          const Variable& given_attended, const Variable& output, const Variable& output_bias,
                          const Variable& gain, const Variable& norm_bias, const Variable& in, const Variable& in_bias,
                          const Variable& out, const Variable& out_bias) {
    const at::Tensor input = rows.contiguous(), attended = given_attended.contiguous();
    const at::Tensor result = at::empty_like(input), sum = at::empty_like(input),
                     inner = at::empty({input.size(0), in.size(0)}, input.options());
    const at::Tensor output_columns = Transposed(output), in_columns = Transposed(in), out_columns = Transposed(out);
    const cpu::AfterAttention half{.output = TrainedMapOf(output, output_bias, output_columns),
                                   .in = TrainedMapOf(in, in_bias, in_columns),
                                   .out = TrainedMapOf(out, out_bias, out_columns),
                                   .norm = TrainedNormOf(gain, norm_bias, epsilon),
                                   .normed_residual = normed_residual};
    std::vector<float> scratch(cpu::AfterAttentionScratchFloats(half));
    cpu::RunAfterAttention(half,
                           {.rows = input.size(0),
                            .input = FloatsOf(input),
                            .attended = FloatsOf(attended),
                            .sum = MutableFloatsOf(sum),
                            .inner = MutableFloatsOf(inner),
                            .result = MutableFloatsOf(result)},
                           scratch.data());
    context->save_for_backward(
        {attended, sum, inner, output, output_bias, gain, norm_bias, in, in_bias, out, out_bias});
    context->saved_data["normed_residual"] = normed_residual;
    context->saved_data["epsilon"] = epsilon;
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& given) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = given[0].contiguous();
    const cpu::AfterAttention half{.output = TrainedMapOf(saved[3], saved[4]),
                                   .in = TrainedMapOf(saved[7], saved[8]),
                                   .out = TrainedMapOf(saved[9], saved[10]),
                                   .norm = TrainedNormOf(saved[5], saved[6], context->saved_data["epsilon"].toDouble()),
                                   .normed_residual = context->saved_data["normed_residual"].toBool()};
    variable_list to = {Variable(), Variable(), at::empty_like(saved[1]), at::empty_like(saved[1])};
    for (size_t i = 3; i < saved.size(); ++i) to.push_back(at::zeros_like(saved[i]));
    const auto map = [&](size_t i) {
      return cpu::MapGradient{.weight = MutableFloatsOf(to[i]), .bias = MutableFloatsOf(to[i + 1])};
    };
    std::vector<float> scratch(cpu::AfterAttentionScratchFloats(half));
    cpu::DifferentiateAfterAttention(half,
                                     {.rows = saved[1].size(0),
                                      .attended = FloatsOf(saved[0]),
                                      .sum = MutableFloatsOf(saved[1]),
                                      .inner = MutableFloatsOf(saved[2])},
                                     {.result = FloatsOf(gradient),
                                      .input = MutableFloatsOf(to[2]),
                                      .attended = MutableFloatsOf(to[3]),
                                      .norm = {.gain = MutableFloatsOf(to[6]), .bias = MutableFloatsOf(to[7])},
                                      .output = map(4),
                                      .in = map(8),
                                      .out = map(10)},
                                     scratch.data());
    return to;
  }
};

}  // namespace

bool CanRunHalves(const at::Tensor& rows, const Linear& output, const Linear& feed_forward_in) {
  return c10::GradMode::is_enabled() && rows.is_cpu() && rows.scalar_type() == at::kFloat && output.weight.defined() &&
         output.weight.scalar_type() == at::kFloat && feed_forward_in.weight.defined() &&
         output.outputs() % cpu::kLanes == 0 && feed_forward_in.outputs() % cpu::kLanes == 0;
}

ProjectedRows BeforeAttention::operator()(const at::Tensor& rows) const {
  const at::Tensor no_rows = at::empty({0, rows.size(1)}, rows.options());
  const variable_list of =
      BeforeFunction::apply(keeps_input, norm.epsilon, window_norm.epsilon, rows, OrEmpty(norm.gain, rows),
                            OrEmpty(norm.bias, rows), query.weight, BiasOf(query), key.weight, BiasOf(key),
                            value.weight, BiasOf(value), projection.defined() ? projection.weight : no_rows,
                            projection.defined() ? BiasOf(projection) : at::empty({0}, rows.options()),
                            OrEmpty(window_norm.gain, rows), OrEmpty(window_norm.bias, rows));
  return {.queries = of[0], .keys = of[1], .values = of[2], .logits = of[3], .keys_values = of[4], .input = of[5]};
}

at::Tensor AfterAttention::operator()(const at::Tensor& rows, const at::Tensor& attended) const {
  return AfterFunction::apply(normed_residual, norm.epsilon, rows, attended, output.weight, BiasOf(output), norm.gain,
                              norm.bias, in.weight, BiasOf(in), out.weight, BiasOf(out));
}

}  // namespace longshort::models
