// N5: every layer against float64: what it computes, and what it gives back against central
// differences. The references are written here from the definitions (and tests/device/reference).

#include "stages/model/layers.hpp"

#include <functional>

#include "stages/model/model.hpp"
#include "stages/model/transformer.hpp"
#include "tests/device/reference.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layer_harness.hpp"

namespace zerolab::test {
namespace {

/// The weights of a module in order of registration.
using Weights = std::vector<Doubles>;

/// What a module computes of its input and its weights.
using Reference = std::function<Doubles(const Doubles& input, const Weights& weights)>;

// Sums of a few dozen products of numbers near 1, through up to fourteen layers: errors of a few
// dozen roundings of the largest element of an array. Central differences are off by 1e-10.
constexpr double kAllowed = 64 * kRounding;

void check_close(const std::string& what, const Floats& got, const Doubles& want) {
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  INFO(what << ": " << worst_error(got, want, kRounding * largest)
            << " roundings of its largest element");
  CHECK(largest > 0);
  CHECK(worst_error(got, want, kAllowed * largest) <= 1);
}

Weights weights_of(const LayerHarness& harness, const ParameterSet& parameters) {
  Weights weights;
  for (const Parameter& parameter : parameters)
    weights.push_back(widened(harness.weight(parameter)));
  return weights;
}

/// Every parameter's gradient against the differences of `loss` as a function of the weights.
void check_parameter_gradients(const LayerHarness& harness, const ParameterSet& parameters,
                               const std::function<double(const Weights&)>& loss) {
  Weights weights = weights_of(harness, parameters);
  for (const Parameter& parameter : parameters) {
    const std::size_t p = at(parameter.id());
    const Doubles value = weights[p];
    const Doubles want = differentiate(
        [&](const Doubles& changed) {
          weights[p] = changed;
          return loss(weights);
        },
        value);
    weights[p] = value;
    check_close(parameter.name() + " gradient", harness.gradient(parameter), want);
    CHECK(harness.times_ready(parameter) == 1);
  }
}

/// Runs the module forward and backward with the loss sum(output * random numbers).
void check_layer(LayerHarness& harness, ParameterSet& parameters, Module& module,
                 const Shape& input_shape, const Reference& reference) {
  INFO(module.name());
  harness.attach(module);
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  const Floats input = random_floats(numel(input_shape), 1);
  const Tensor output = module.forward(harness.tensor(input_shape, input));
  const Weights weights = weights_of(harness, parameters);
  check_close("output", floats_of(output), reference(widened(input), weights));

  const Floats output_gradient = random_floats(output.numel(), 2);
  harness.begin_backward();
  const Tensor input_gradient = module.backward(harness.tensor(output.shape(), output_gradient));
  const auto loss = [&](const Doubles& x, const Weights& w) {
    return dot(widened(output_gradient), reference(x, w));
  };
  check_close("input gradient", floats_of(input_gradient),
              differentiate([&](const Doubles& x) { return loss(x, weights); }, widened(input)));
  check_parameter_gradients(harness, parameters,
                            [&](const Weights& w) { return loss(widened(input), w); });
}

/// y = x W^T + b; no bias if it is empty.
Doubles linear(Index in, const Doubles& x, const Doubles& weight, const Doubles& bias) {
  const Index out = static_cast<Index>(weight.size()) / in;
  Doubles y;
  for (Index row = 0; row < static_cast<Index>(x.size()) / in; ++row) {
    for (Index o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : bias[at(o)];
      for (Index i = 0; i < in; ++i) sum += x[at(row * in + i)] * weight[at(o * in + i)];
      y.push_back(sum);
    }
  }
  return y;
}

Doubles sum(Doubles a, const Doubles& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

struct AttentionShape {
  Index length, width, heads;
};

/// softmax(q k^T / sqrt(depth)) v over the rows before each row, head by head.
Doubles attention(const AttentionShape& s, const Doubles& x, const Weights& w) {
  const Index depth = s.width / s.heads;
  const Doubles qkv = linear(s.width, x, w[0], w[1]);
  const auto entry = [&](Index part, Index row, Index head, Index d) {
    return qkv[at(row * 3 * s.width + part * s.width + head * depth + d)];
  };
  Doubles mixed(x.size(), 0.0);
  for (Index row = 0; row < static_cast<Index>(x.size()) / s.width; ++row) {
    const Index first = row / s.length * s.length;  // of this sequence
    for (Index head = 0; head < s.heads; ++head) {
      Doubles weights;
      double total = 0;
      for (Index other = first; other <= row; ++other) {
        double score = 0;
        for (Index d = 0; d < depth; ++d)
          score += entry(0, row, head, d) * entry(1, other, head, d);
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(depth))));
        total += weights.back();
      }
      for (Index other = first; other <= row; ++other) {
        for (Index d = 0; d < depth; ++d) {
          mixed[at(row * s.width + head * depth + d)] +=
              weights[at(other - first)] / total * entry(2, other, head, d);
        }
      }
    }
  }
  return linear(s.width, mixed, w[2], w[3]);
}

/// `w` holds the twelve parameters of a block from position `first` on.
Doubles block(const AttentionShape& s, const Doubles& x, const Weights& w, std::size_t first = 0) {
  const auto part = [&](std::size_t i) -> const Doubles& { return w[first + i]; };
  const Doubles middle = sum(x, attention(s, layer_norm(s.width, 1e-5, x, part(0), part(1)),
                                          {part(2), part(3), part(4), part(5)}));
  const Doubles up =
      linear(s.width, layer_norm(s.width, 1e-5, middle, part(6), part(7)), part(8), part(9));
  return sum(middle, linear(4 * s.width, gelu(up), part(10), part(11)));
}

TEST_CASE("N5: Linear", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  Linear module(parameters, "linear", 5, 7, Initial::zeros());
  check_layer(harness, parameters, module, {3, 5},
              [](const Doubles& x, const Weights& w) { return linear(5, x, w[0], w[1]); });
}

TEST_CASE("N5: TiedHead", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  TiedHead module("head", parameters.add("table", {11, 3}, Initial::zeros()));
  check_layer(harness, parameters, module, {5, 3},
              [](const Doubles& x, const Weights& w) { return linear(3, x, w[0], {}); });
}

TEST_CASE("N5: LayerNorm", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  LayerNorm module(parameters, "norm", 9);
  check_layer(harness, parameters, module, {5, 9}, [](const Doubles& x, const Weights& w) {
    return layer_norm(9, 1e-5, x, w[0], w[1]);
  });
}

TEST_CASE("N5: Gelu", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  Gelu module("gelu");
  check_layer(harness, parameters, module, {7, 5},
              [](const Doubles& x, const Weights&) { return gelu(x); });
}

TEST_CASE("N5: CausalSelfAttention", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  const AttentionShape shape{5, 9, 3};
  CausalSelfAttention module(parameters, "attention", shape.width, shape.heads, Initial::zeros(),
                             Initial::zeros(), shape.length);
  check_layer(harness, parameters, module, {3 * shape.length, shape.width},
              [&](const Doubles& x, const Weights& w) { return attention(shape, x, w); });
}

TEST_CASE("N5: TransformerBlock", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  const AttentionShape shape{5, 9, 3};
  TransformerBlock module(parameters, "block", shape.width, shape.heads, Initial::zeros(),
                          Initial::zeros(), shape.length);
  check_layer(harness, parameters, module, {2 * shape.length, shape.width},
              [&](const Doubles& x, const Weights& w) { return block(shape, x, w); });
}

TEST_CASE("N5: Embedding", "[model]") {
  LayerHarness harness;
  ParameterSet parameters;
  Embedding module(parameters, "embedding", 7, 3, Initial::zeros());
  harness.attach(module);
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  const std::vector<std::int32_t> tokens{3, 0, 3, 6, 3};  // one often, some never
  const Tensor output = module.forward(harness.tensor({5}, tokens));
  const Weights weights = weights_of(harness, parameters);
  check_close("output", floats_of(output), embedding(3, tokens, weights[0]));

  const Floats output_gradient = random_floats(output.numel(), 2);
  harness.begin_backward();
  CHECK_FALSE(module.backward(harness.tensor(output.shape(), output_gradient)));
  check_parameter_gradients(harness, parameters, [&](const Weights& w) {
    return dot(widened(output_gradient), embedding(3, tokens, w[0]));
  });
}

/// The mean cross entropy of a whole model and all of its gradients.
void check_model(
    const ModelDescription& description, Index sequences,
    const std::function<Doubles(const std::vector<std::int32_t>&, const Weights&)>& logits_of) {
  LayerHarness harness;
  const std::unique_ptr<Model> model = build_model(description);
  ParameterSet& parameters = model->parameters();
  harness.attach(model->root());
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  const Index vocabulary = description.vocab_size;
  const auto tokens = random_tokens(sequences * description.sequence_length, vocabulary, 1);
  Tensor logits =
      model->root().forward(harness.tensor({sequences, description.sequence_length}, tokens));
  check_close("logits", floats_of(logits), logits_of(tokens, weights_of(harness, parameters)));

  const Index rows = logits.rows();
  const auto targets = random_tokens(rows, vocabulary, 2);
  const auto loss = [&](const Weights& w) {
    return cross_entropy(vocabulary, targets, logits_of(tokens, w)) / static_cast<double>(rows);
  };
  const Tensor target_tensor = harness.tensor({rows}, targets);
  const double got =
      harness.device().cross_entropy(rows, vocabulary, target_tensor.ints(), logits.floats()) /
      static_cast<double>(rows);
  const double want = loss(weights_of(harness, parameters));
  CHECK(std::abs(got - want) <= kAllowed * want);

  harness.begin_backward();
  harness.device().cross_entropy_backward(rows, vocabulary,
                                          static_cast<float>(1.0 / static_cast<double>(rows)),
                                          target_tensor.ints(), logits.floats());
  CHECK_FALSE(model->root().backward(logits));
  check_parameter_gradients(harness, parameters, loss);
}

TEST_CASE("N5: cross entropy through an MLP", "[model]") {
  ModelDescription description;
  description.type = ModelDescription::Type::mlp;
  description.vocab_size = 11;
  description.sequence_length = 3;
  description.embedding_size = 5;
  description.hidden_sizes = {7, 3};
  check_model(description, 5, [](const std::vector<std::int32_t>& tokens, const Weights& w) {
    Doubles x = embedding(5, tokens, w[0]);
    x = gelu(linear(15, x, w[1], w[2]));
    x = gelu(linear(7, x, w[3], w[4]));
    return linear(3, x, w[5], w[6]);
  });
}

TEST_CASE("N5: cross entropy through a transformer with its tied head", "[model]") {
  ModelDescription description;
  description.vocab_size = 11;
  description.sequence_length = 5;
  description.num_layers = 2;
  description.num_heads = 3;
  description.hidden_size = 6;
  const AttentionShape shape{5, 6, 3};
  check_model(description, 3, [&](const std::vector<std::int32_t>& tokens, const Weights& w) {
    Doubles x = embedding(6, tokens, w[0]);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += w[1][i % w[1].size()];
    x = block(shape, x, w, 2);
    x = block(shape, x, w, 14);
    return linear(6, layer_norm(6, 1e-5, x, w[26], w[27]), w[0], {});
  });
}

}  // namespace
}  // namespace zerolab::test
