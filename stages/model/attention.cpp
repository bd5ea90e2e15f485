#include "stages/model/attention.hpp"

#include <cmath>
#include <utility>

namespace zerolab {
namespace {

// The four matrices of one head, in a batch of sequences (outer) times heads (inner):
//
//   query, key, value   length x depth inside rows of qkv[sequences * length, 3 * width]
//   scores              length x length, contiguous
//   mixed               length x depth inside rows of [sequences * length, width]
struct Heads {
  Index sequences, heads, length, width;

  Index depth() const { return width / heads; }

  Operand in_qkv(bool transposed = false) const {
    return {3 * width, transposed, length * 3 * width, depth()};
  }
  Operand in_scores(bool transposed = false) const {
    return {length, transposed, heads * length * length, length * length};
  }
  Operand in_mixed(bool transposed = false) const {
    return {width, transposed, length * width, depth()};
  }
  Product product(Index m, Index n, Index k, Operand a, Operand b, Operand c) const {
    return {.m = m,
            .n = n,
            .k = k,
            .a = a,
            .b = b,
            .c = c,
            .bias = false,
            .outer = sequences,
            .inner = heads};
  }
  float factor() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(depth()))); }
};

}  // namespace

CausalSelfAttention::CausalSelfAttention(ParameterSet& parameters, std::string name, Index width,
                                         Index heads, Initial qkv, Initial projection,
                                         const Index& length)
    : Module(std::move(name)),
      width_(width),
      heads_(heads),
      length_(length),
      qkv_(parameters, this->name() + ".qkv", width, 3 * width, qkv),
      projection_(parameters, this->name() + ".projection", width, width, projection) {
  adopt(qkv_);
  adopt(projection_);
}

Tensor CausalSelfAttention::do_forward(const Tensor& input) {
  const Heads at{input.rows() / length_, heads_, length_, width_};
  const Tensor qkv = qkv_.forward(input);
  const ConstValues query = qkv.values();
  const ConstValues key = query + width_;
  const ConstValues value = key + width_;

  Tensor scores = activation({at.sequences, heads_, length_, length_}, "probabilities");
  device().matmul(
      at.product(length_, length_, at.depth(), at.in_qkv(), at.in_qkv(true), at.in_scores()), query,
      key, nullptr, scores.values());
  device().causal_softmax(at.sequences * heads_, length_, at.factor(), scores.values());

  Tensor mixed = activation({input.rows(), width_}, "mixed values");
  device().matmul(
      at.product(length_, at.depth(), length_, at.in_scores(), at.in_qkv(), at.in_mixed()),
      scores.values(), value, nullptr, mixed.values());
  if (keeps()) kept_.push_back({qkv, scores, length_});
  return projection_.forward(mixed);
}

Tensor CausalSelfAttention::do_backward(const Tensor& output_gradient) {
  const Tensor mixed_gradient = projection_.backward(output_gradient);
  const Kept kept = std::move(kept_.back());
  kept_.pop_back();
  const Index length = kept.length;
  const Heads at{output_gradient.rows() / length, heads_, length, width_};
  const ConstValues query = kept.qkv.values();
  const ConstValues key = query + width_;
  const ConstValues value = key + width_;
  const ConstValues probabilities = kept.probabilities.values();

  Tensor qkv_gradient = activation(kept.qkv.shape(), "qkv gradient");
  const Values query_gradient = qkv_gradient.values();
  const Values key_gradient = query_gradient + width_;
  const Values value_gradient = key_gradient + width_;
  {
    Tensor scores_gradient = activation(kept.probabilities.shape(), "scores gradient");
    const Values ds = scores_gradient.values();
    device().matmul(
        at.product(length, at.depth(), length, at.in_scores(true), at.in_mixed(), at.in_qkv()),
        probabilities, mixed_gradient.values(), nullptr, value_gradient);
    device().matmul(
        at.product(length, length, at.depth(), at.in_mixed(), at.in_qkv(true), at.in_scores()),
        mixed_gradient.values(), value, nullptr, ds);
    device().causal_softmax_backward(at.sequences * heads_, length, at.factor(), probabilities, ds);
    device().matmul(
        at.product(length, at.depth(), length, at.in_scores(), at.in_qkv(), at.in_qkv()), ds, key,
        nullptr, query_gradient);
    device().matmul(
        at.product(length, at.depth(), length, at.in_scores(true), at.in_qkv(), at.in_qkv()), ds,
        query, nullptr, key_gradient);
  }
  return qkv_.backward(qkv_gradient);
}

}  // namespace zerolab
