#include "tests/support/sandwich.hpp"

#include <utility>

namespace zerolab::test {
namespace {

class Sandwich : public Module {
 public:
  Sandwich(ParameterSet& parameters, const Filling& filling)
      : Module("sandwich"),
        embedding_(parameters, "embedding", kOddVocabulary, kSandwichWidth, Initial::normal(1)),
        filling_(filling(parameters)),
        head_(parameters, "head", kSandwichWidth, kOddVocabulary, Initial::normal(1)) {
    adopt(embedding_);
    adopt(*filling_);
    adopt(head_);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    return head_.forward(filling_->forward(embedding_.forward(tokens)));
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    embedding_.backward(filling_->backward(head_.backward(logits_gradient)));
    return {};
  }

 private:
  Embedding embedding_;
  std::unique_ptr<Module> filling_;
  Linear head_;
};

}  // namespace

Training training_of_sandwich(const Filling& filling, int stage) {
  Training training = training_of_odd_sizes(stage);
  training.build = [filling] {
    return std::make_unique<ModelOf<Sandwich>>(Targets::every_position, filling);
  };
  return training;
}

}  // namespace zerolab::test
