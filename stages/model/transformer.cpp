#include "stages/model/transformer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

constexpr double kDeviation = 0.02;

// GPT-2 scales the layers that write into the residual stream by the number of such layers.
Initial into_residual(Index layers) {
  return Initial::normal(kDeviation / std::sqrt(2.0 * static_cast<double>(layers)));
}

}  // namespace

TransformerBlock::TransformerBlock(ParameterSet& parameters, std::string name, Index width,
                                   Index heads, Initial inner, Initial into_residual,
                                   const Index& length)
    : Module(std::move(name)),
      norm1_(parameters, this->name() + ".norm1", width),
      attention_(parameters, this->name() + ".attention", width, heads, inner, into_residual,
                 length),
      norm2_(parameters, this->name() + ".norm2", width),
      up_(parameters, this->name() + ".mlp.up", width, 4 * width, inner),
      gelu_(this->name() + ".mlp.gelu"),
      down_(parameters, this->name() + ".mlp.down", 4 * width, width, into_residual) {
  for (Module* child :
       std::initializer_list<Module*>{&norm1_, &attention_, &norm2_, &up_, &gelu_, &down_}) {
    adopt(*child);
  }
}

Tensor TransformerBlock::do_forward(const Tensor& input) {
  Tensor middle = attention_.forward(norm1_.forward(input));
  add_to(middle, input);
  Tensor output = down_.forward(gelu_.forward(up_.forward(norm2_.forward(middle))));
  add_to(output, middle);
  return output;
}

Tensor TransformerBlock::do_backward(const Tensor& output_gradient) {
  Tensor middle_gradient =
      norm2_.backward(up_.backward(gelu_.backward(down_.backward(output_gradient))));
  add_to(middle_gradient, output_gradient);
  Tensor input_gradient = norm1_.backward(attention_.backward(middle_gradient));
  add_to(input_gradient, middle_gradient);
  return input_gradient;
}

Transformer::Transformer(ParameterSet& parameters, const ModelDescription& d)
    : Module("transformer"),
      positions_(d.sequence_length),
      token_embedding_(parameters, "token_embedding", d.vocab_size, d.hidden_size,
                       Initial::normal(kDeviation)),
      position_embedding_(parameters, "position_embedding", d.sequence_length, d.hidden_size,
                          Initial::normal(kDeviation)),
      blocks_([&] {
        std::vector<std::unique_ptr<TransformerBlock>> blocks;
        for (Index i = 0; i < d.num_layers; ++i) {
          blocks.push_back(std::make_unique<TransformerBlock>(
              parameters, fmt::format("blocks.{}", i), d.hidden_size, d.num_heads,
              Initial::normal(kDeviation), into_residual(d.num_layers), length_));
        }
        return blocks;
      }()),
      final_norm_(parameters, "final_norm", d.hidden_size),
      head_("head", token_embedding_.table()) {
  adopt(token_embedding_);
  adopt(position_embedding_);
  for (const auto& block : blocks_) adopt(*block);
  adopt(final_norm_);
  adopt(head_);
  register_external_parameter(head_, token_embedding_.table());
}

std::vector<Module*> Transformer::segments() {
  std::vector<Module*> result;
  for (const auto& block : blocks_) result.push_back(block.get());
  return result;
}

Tensor Transformer::do_forward(const Tensor& tokens) {
  length_ = tokens.width();
  if (length_ > positions_) {
    throw Error(Code::usage,
                fmt::format("a sequence of {} tokens for a model that has {} positions", length_,
                            positions_),
                "make it shorter, or describe a model with a larger sequence_length");
  }
  Tensor positions = activation(tokens.shape(), "positions", Dtype::int32);
  device().positions(tokens.rows(), length_, positions.ints());

  Tensor x = token_embedding_.forward(tokens);
  add_to(x, position_embedding_.forward(positions));
  for (const auto& block : blocks_) x = block->forward(x);
  return head_.forward(final_norm_.forward(x));
}

Tensor Transformer::do_backward(const Tensor& logits_gradient) {
  Tensor dx = final_norm_.backward(head_.backward(logits_gradient));
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    dx = (*block)->backward(dx);
  }
  position_embedding_.backward(dx);
  token_embedding_.backward(dx);
  return {};
}

}  // namespace zerolab
