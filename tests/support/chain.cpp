#include "tests/support/chain.hpp"

#include <algorithm>
#include <utility>

namespace zerolab::test {
namespace {

/// A chain as a whole model.
class Root : public ChainModule {
 public:
  Root(ParameterSet& parameters, const Chain& chain) : ChainModule("chain", chain(parameters)) {}
};

}  // namespace

ChainModule::ChainModule(std::string name, Links links)
    : Module(std::move(name)), links_(std::move(links)) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto before = links_.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(links_.begin(), before, links_[i]) == before) adopt(*links_[i]);
  }
}

Tensor ChainModule::do_forward(const Tensor& input) {
  Tensor x = input;
  for (const auto& link : links_) x = link->forward(x);
  return x;
}

Tensor ChainModule::do_backward(const Tensor& output_gradient) {
  Tensor dx = output_gradient;
  for (auto link = links_.rbegin(); link != links_.rend(); ++link) dx = (*link)->backward(dx);
  return dx;
}

Training training_of_chain(const Chain& chain, Index vocabulary, int stage) {
  Training training = training_of_odd_sizes(stage);
  training.build = [chain] {
    return std::make_unique<ModelOf<Root>>(Targets::every_position, chain);
  };
  training.batches = patterned_batches(vocabulary);
  return training;
}

Training alone(Training training, int ranks) {
  training.settings.micro_batch *= ranks;
  training.settings.zero.stage = 0;
  return training;
}

}  // namespace zerolab::test
