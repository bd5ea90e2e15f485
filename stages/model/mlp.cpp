#include "stages/model/mlp.hpp"

#include <fmt/format.h>

#include <cmath>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

// He initialisation (He et al., 2015); the last layer starts small, so that the first loss is near
// ln(vocabulary).
Initial layer_initial(Index in, bool last) {
  return Initial::normal(std::sqrt(2.0 / static_cast<double>(in)) * (last ? 0.1 : 1.0));
}

}  // namespace

Mlp::Mlp(ParameterSet& parameters, const ModelDescription& d)
    : Module("mlp"),
      window_(d.sequence_length),
      embedding_(parameters, "embedding", d.vocab_size, d.embedding_size, Initial::normal(1)) {
  adopt(embedding_);
  std::vector<Index> sizes{d.sequence_length * d.embedding_size};
  sizes.insert(sizes.end(), d.hidden_sizes.begin(), d.hidden_sizes.end());
  sizes.push_back(d.vocab_size);
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const bool last = i + 2 == sizes.size();
    layers_.push_back(std::make_unique<Linear>(parameters, fmt::format("layers.{}", i), sizes[i],
                                               sizes[i + 1], layer_initial(sizes[i], last)));
    adopt(*layers_.back());
    if (last) continue;
    gelus_.push_back(std::make_unique<Gelu>(fmt::format("gelus.{}", i)));
    adopt(*gelus_.back());
  }
}

Tensor Mlp::do_forward(const Tensor& tokens) {
  if (tokens.width() != window_) {
    throw Error(Code::usage,
                fmt::format("a sequence of {} tokens for a model that sees exactly {}",
                            tokens.width(), window_),
                "give it whole windows");
  }
  Tensor x = embedding_.forward(tokens).reshaped({tokens.rows(), -1});
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x);
    if (i < gelus_.size()) x = gelus_[i]->forward(x);
  }
  return x;
}

Tensor Mlp::do_backward(const Tensor& logits_gradient) {
  Tensor dx = logits_gradient;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (i < gelus_.size()) dx = gelus_[i]->backward(dx);
    dx = layers_[i]->backward(dx);
  }
  embedding_.backward(dx);
  return {};
}

}  // namespace zerolab
