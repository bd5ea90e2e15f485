// Mistakes of those who write models.
#include <memory>
#include <utility>

#include "lab/failures/mistakes/mistake.hpp"
#include "stages/model/layers.hpp"

namespace zerolab {
namespace {

constexpr Index kWidth = 16;
constexpr Index kFrom = 2;  // the step from which on ranks take their own branches

using Middle = std::function<std::unique_ptr<Module>(ParameterSet&)>;

/// Embedding, a module that is written rightly or wrongly, and a linear head.
class Example : public Module {
 public:
  Example(ParameterSet& parameters, Index vocabulary, const Middle& middle)
      : Module("example"),
        embedding_(parameters, "embedding", vocabulary, kWidth, Initial::normal(0.5)),
        middle_(middle(parameters)),
        head_(parameters, "head", kWidth, vocabulary, Initial::normal(0.1)) {
    adopt(embedding_);
    adopt(*middle_);
    adopt(head_);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    return head_.forward(middle_->forward(embedding_.forward(tokens)));
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    embedding_.backward(middle_->backward(head_.backward(logits_gradient)));
    return {};
  }

 private:
  Embedding embedding_;
  std::unique_ptr<Module> middle_;
  Linear head_;
};

/// Trains an example model around Middle(parameters, arguments...) instead of the one that was
/// asked for.
template <typename Middle, typename... Arguments>
void train_example(Training& training, Arguments... arguments) {
  training.build = [vocabulary = training.vocab_size, arguments...] {
    const auto middle = [&](ParameterSet& parameters) {
      return std::make_unique<Middle>(parameters, arguments...);
    };
    return std::make_unique<ModelOf<Example>>(Targets::every_position, vocabulary, middle);
  };
}

/// A layer and another one, which may run or not, one before the other or the other before the one.
class TwoLayers : public Module {
 public:
  TwoLayers(ParameterSet& parameters, const std::string& name)
      : Module(name),
        first_(parameters, name + ".first", kWidth, kWidth, Initial::normal(0.3)),
        second_(parameters, name + ".second", kWidth, kWidth, Initial::normal(0.3)) {
    adopt(first_);
    adopt(second_);
  }

 protected:
  /// What runs in this forward, in this order.
  virtual std::vector<Module*> chosen() = 0;
  Module& first() { return first_; }
  Module& second() { return second_; }

  Tensor do_forward(const Tensor& input) override {
    Tensor x = input;
    ran_ = chosen();
    for (Module* layer : ran_) x = layer->forward(x);
    return x;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    Tensor dx = output_gradient;
    for (auto layer = ran_.rbegin(); layer != ran_.rend(); ++layer) dx = (*layer)->backward(dx);
    return dx;
  }

 private:
  Linear first_, second_;
  std::vector<Module*> ran_;
};

/// Every second step the other way round.
class ChangesOrder : public TwoLayers {
 public:
  ChangesOrder(ParameterSet& parameters, bool mended)
      : TwoLayers(parameters, "branches"), mended_(mended) {}

 protected:
  std::vector<Module*> chosen() override {
    if (mended_ || context().recorder.step() % 2 == 0) return {&first(), &second()};
    return {&second(), &first()};
  }

 private:
  bool mended_;
};

/// Which of its experts runs depends on the rank; that is allowed where all of them are one unit.
class Experts : public TwoLayers {
 public:
  Experts(ParameterSet& parameters, bool mended) : TwoLayers(parameters, "experts") {
    if (mended) make_leaf();
  }

 protected:
  std::vector<Module*> chosen() override {
    const bool other = context().recorder.step() >= kFrom && context().recorder.rank() % 2 == 1;
    return {other ? &second() : &first()};
  }
};

/// Some ranks leave the second layer out.
class SkipsLayer : public TwoLayers {
 public:
  SkipsLayer(ParameterSet& parameters, bool mended) : TwoLayers(parameters, "optional") {
    if (mended) make_leaf();
  }

 protected:
  std::vector<Module*> chosen() override {
    if (context().recorder.rank() % 2 == 1) return {&first()};
    return {&first(), &second()};
  }
};

/// One layer, applied until its output is good enough, which some ranks find earlier than others.
class Iterates : public Module {
 public:
  Iterates(ParameterSet& parameters, bool mended)
      : Module("iterates"), layer_(parameters, "iterated", kWidth, kWidth, Initial::normal(0.3)) {
    adopt(layer_);
    if (mended) make_leaf();
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    const Tensor once = layer_.forward(input);
    return good_enough() ? once : layer_.forward(once);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    Tensor dx = layer_.backward(output_gradient);
    return good_enough() ? std::move(dx) : layer_.backward(dx);
  }

 private:
  bool good_enough() const { return context().recorder.rank() % 2 == 1; }

  Linear layer_;
};

/// One layer, applied twice.
class AppliedTwice : public Module {
 public:
  AppliedTwice(ParameterSet& parameters, bool mended)
      : Module("applied_twice"),
        mended_(mended),
        layer_(parameters, "shared", kWidth, kWidth, Initial::normal(0.3)) {
    adopt(layer_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override { return layer_.forward(layer_.forward(input)); }
  Tensor do_backward(const Tensor& output_gradient) override {
    Tensor dx = layer_.backward(output_gradient);
    return mended_ ? layer_.backward(dx) : std::move(dx);
  }

 private:
  bool mended_;
  Linear layer_;
};

/// Adds a row of weights to every row; its own, or what another module has given it.
class Shift : public Module {
 public:
  Shift(std::string name, Parameter& shift, bool gives_gradient)
      : Module(std::move(name)), shift_(shift), gives_gradient_(gives_gradient) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    Tensor output = activation(input.shape(), "output");
    const ConstValues row = weight(shift_);
    device().copy(output.values(), input.values(), input.numel());
    for (Index r = 0; r < output.rows(); ++r)
      device().add(output.values() + r * kWidth, row, kWidth);
    return output;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    if (gives_gradient_) {
      add_gradient(shift_, [&](Values out) {
        device().sum_rows(output_gradient.rows(), kWidth, output_gradient.values(), out);
      });
    }
    return output_gradient;
  }

 private:
  Parameter& shift_;
  bool gives_gradient_;
};

/// Owns a bias and hands it on instead of adding it, as Megatron's layers do; what adds it is
/// another module.
class HandsBiasOn : public Module {
 public:
  HandsBiasOn(ParameterSet& parameters, bool mended)
      : Module("hands_bias_on"),
        bias_(own(parameters.add("hands_bias_on.bias", {kWidth}, Initial::zeros()))) {
    if (mended) register_external_parameter(adds_it_, bias_);
  }

  Module& adds_it() { return adds_it_; }

 protected:
  Tensor do_forward(const Tensor& input) override { return input; }
  Tensor do_backward(const Tensor& output_gradient) override { return output_gradient; }

 private:
  Parameter& bias_;
  Shift adds_it_{"adds_bias", bias_, true};
};

class BiasFromElsewhere : public Module {
 public:
  BiasFromElsewhere(ParameterSet& parameters, bool mended)
      : Module("bias_from_elsewhere"), owner_(parameters, mended) {
    adopt(owner_);
    adopt(owner_.adds_it());
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    return owner_.adds_it().forward(owner_.forward(input));
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    return owner_.backward(owner_.adds_it().backward(output_gradient));
  }

 private:
  HandsBiasOn owner_;
};

/// Reads a weight in forward and forgets it in backward.
class OwnShift : public Shift {
 public:
  OwnShift(ParameterSet& parameters, bool mended)
      : OwnShift(parameters.add("shift.weight", {kWidth}, Initial::zeros()), mended) {}

 private:
  OwnShift(Parameter& shift, bool mended) : Shift("shift", shift, mended) { own(shift); }
};

template <typename Middle>
Mistake in_example(std::string name, std::string what) {
  return {std::move(name), std::move(what),
          [](Training& training, int) { train_example<Middle>(training, false); },
          [](Training& training, int) { train_example<Middle>(training, true); }};
}

void unregister_head(Training& training, int /*rank*/) {
  training.build = [build = training.build] {
    std::unique_ptr<Model> model = build();
    Module* head = model->root().find("head");
    if (head == nullptr || head->reads().empty() || !head->borrows(*head->reads().front())) {
      throw Error(Code::usage, "--break unregistered-head: this model has no tied head",
                  "choose a transformer with --model, such as gpt-nano");
    }
    unregister_external_parameter(*head, *head->reads().front());
    return model;
  };
}

}  // namespace

std::vector<Mistake> mistakes_in_models() {
  return {
      {"unregistered-head",
       "the output head's tied weight is not registered as an external parameter", unregister_head},
      in_example<BiasFromElsewhere>(
          "returned-parameter", "a module hands its bias to another one, which does not say so"),
      in_example<OwnShift>("missing-gradient",
                           "a layer reads a weight in forward and gives no gradient for it"),
      in_example<AppliedTwice>("backward-once",
                               "a layer runs forward twice in a pass, and backward once"),
      in_example<ChangesOrder>("changing-order", "two layers change places in every second step"),
      in_example<Experts>("own-branch",
                          "from step 2 on odd ranks run another expert than even ones"),
      in_example<Iterates>("own-depth", "odd ranks apply a layer once, even ones twice"),
      in_example<SkipsLayer>("skipped-on-some-ranks", "odd ranks leave a layer out"),
  };
}

}  // namespace zerolab
