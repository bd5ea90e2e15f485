#include "tests/support/described_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "stages/model/layers.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/plain_model.hpp"

namespace zerolab::test {
namespace {

/// x * s, column by column, where s is another module's.
class Scale : public Module {
 public:
  Scale(std::string name, Parameter& lent) : Module(std::move(name)), lent_(lent) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    Tensor output = scaled(input);
    if (keeps()) inputs_.push_back(input);
    return output;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    const Tensor input = std::move(inputs_.back());
    inputs_.pop_back();
    const Tensor terms = activation(input.shape(), "terms");
    for (Index i = 0; i < input.numel(); ++i) {
      terms.floats()[i] = output_gradient.floats()[i] * input.floats()[i];
    }
    add_gradient(lent_, [&](float* out) {
      device().sum_rows(input.rows(), input.width(), terms.floats(), out);
    });
    return scaled(output_gradient);
  }

 private:
  Tensor scaled(const Tensor& x) {
    Tensor output = activation(x.shape(), "scaled");
    const float* s = weight(lent_);
    for (Index i = 0; i < x.numel(); ++i) output.floats()[i] = x.floats()[i] * s[i % x.width()];
    return output;
  }

  Parameter& lent_;
  std::vector<Tensor> inputs_;
};

/// What a group that does not always run goes by.
struct Now {
  bool even_batch = false;
};

class Group : public Module {
 public:
  Group(std::string name, std::vector<std::shared_ptr<Module>> parts, const Part& part,
        const Now& now)
      : Module(std::move(name)),
        parts_(std::move(parts)),
        when_(part.when),
        residual_(part.residual),
        now_(now) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto before = parts_.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(parts_.begin(), before, parts_[i]) == before) adopt(*parts_[i]);
    }
    if (part.leaf) make_leaf();
    if (part.recomputed) recompute_in_backward();
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    const bool runs = runs_now();
    if (keeps()) ran_.push_back(runs);
    if (!runs) return input;
    Tensor x = input;
    for (const auto& part : parts_) x = part->forward(x);
    return residual_ ? sum(x, input) : x;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    const bool ran = ran_.back();
    ran_.pop_back();
    if (!ran) return output_gradient;
    Tensor dx = output_gradient;
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) dx = (*part)->backward(dx);
    return residual_ && dx ? sum(dx, output_gradient) : dx;
  }

 private:
  bool runs_now() const {
    switch (when_) {
      case When::always:
        return true;
      case When::never:
        return false;
      case When::odd_steps:
        return context().recorder.step() % 2 == 1;
      case When::even_batch:
        return now_.even_batch;
      case When::odd_batch:
        return !now_.even_batch;
    }
    return false;
  }
  Tensor sum(const Tensor& a, const Tensor& b) const {
    Tensor result = activation(a.shape(), "sum");
    device().copy(result.floats(), a.floats(), a.numel());
    add_to(result, b);
    return result;
  }

  std::vector<std::shared_ptr<Module>> parts_;
  When when_;
  bool residual_;
  const Now& now_;
  std::vector<bool> ran_;
};

class Described : public Module {
 public:
  Described(ParameterSet& parameters, const DescribedModel& model, bool registered)
      : Module("described"),
        parameters_(parameters),
        registered_(registered),
        embedding_(parameters, "embedding", model.vocabulary, model.width, Initial::normal(1)) {
    adopt(embedding_);
    Part body;
    body.kind = Part::Kind::group;
    body.name = "body";
    body.parts = model.parts;
    body_ = made(body);
    adopt(*body_);
    if (model.tied) {
      tied_ = std::make_unique<TiedHead>("tied head", embedding_.table());
      adopt(*tied_);
      if (registered_) register_external_parameter(*tied_, embedding_.table());
    }
    for (const std::string& name : model.frozen) parameters.freeze(name);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    now_.even_batch =
        std::accumulate(tokens.ints(), tokens.ints() + tokens.numel(), Index{0}) % 2 == 0;
    Tensor x = body_->forward(embedding_.forward(tokens));
    return tied_ ? tied_->forward(x) : x;
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    embedding_.backward(
        body_->backward(tied_ ? tied_->backward(logits_gradient) : logits_gradient));
    return {};
  }

 private:
  std::shared_ptr<Module> made(const Part& part) {
    const auto [place, fresh] = modules_.try_emplace(part.name);
    if (fresh) {
      std::shared_ptr<Module> module = build(part);
      modules_[part.name] = module;
    }
    return modules_.at(part.name);
  }
  std::shared_ptr<Module> build(const Part& part) {
    switch (part.kind) {
      case Part::Kind::linear:
        return std::make_shared<Linear>(parameters_, part.name, part.in, part.out,
                                        Initial::normal(0.5));
      case Part::Kind::norm:
        return std::make_shared<LayerNorm>(parameters_, part.name, part.out);
      case Part::Kind::gelu:
        return std::make_shared<Gelu>(part.name);
      case Part::Kind::scale: {
        Parameter& lent = parameters_.at(part.lender + ".weight");
        auto scale = std::make_shared<Scale>(part.name, lent);
        if (registered_) register_external_parameter(*scale, lent);
        return scale;
      }
      case Part::Kind::group:
        break;
    }
    std::vector<std::shared_ptr<Module>> parts;
    for (const Part& each : part.parts) parts.push_back(made(each));
    return std::make_shared<Group>(part.name, std::move(parts), part, now_);
  }

  ParameterSet& parameters_;
  bool registered_;
  Embedding embedding_;
  Now now_;
  std::map<std::string, std::shared_ptr<Module>> modules_;
  std::shared_ptr<Module> body_;
  std::unique_ptr<TiedHead> tied_;
};

NamedWeights named(const Training& training, const Weights& weights) {
  NamedWeights result;
  const std::unique_ptr<Model> model = training.build();
  for (const Parameter& parameter : model->parameters()) {
    const std::vector<float>& values = weights[static_cast<std::size_t>(parameter.id())];
    result[parameter.name()].assign(values.begin(), values.end());
  }
  return result;
}

/// What a training came to.
struct Outcome {
  std::vector<double> losses, norms;
  NamedWeights weights;
};

/// The largest difference relative to the largest value.
double relative_difference(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double off = std::abs(got.at(i) - want[i]);
    difference = std::isfinite(off) ? std::max(difference, off) : HUGE_VAL;
    largest = std::max(largest, std::abs(want[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

std::vector<double> all_of(const NamedWeights& weights) {
  std::vector<double> all;
  for (const auto& [name, values] : weights) all.insert(all.end(), values.begin(), values.end());
  return all;
}

double distance(const Outcome& a, const Outcome& b) {
  return std::max({relative_difference(a.losses, b.losses), relative_difference(a.norms, b.norms),
                   relative_difference(all_of(a.weights), all_of(b.weights))});
}

Outcome plain_outcome(const DescribedModel& model, const NamedWeights& initial,
                      const PlainTraining& training) {
  const PlainResult result = train_plainly(model, initial, training);
  Outcome outcome{{}, {}, result.weights};
  for (const PlainStep& step : result.steps) {
    outcome.losses.push_back(step.loss);
    outcome.norms.push_back(step.gradient_norm);
  }
  return outcome;
}

/// As if each weight had been rounded to fp32 once more: up, not at all, or down.
NamedWeights nudged(NamedWeights weights) {
  int element = 0;
  for (auto& [name, values] : weights) {
    for (double& value : values) value *= 1 + (element++ % 3 - 1) * 0x1p-24;
  }
  return weights;
}

}  // namespace

std::unique_ptr<Model> build_described(const DescribedModel& model, bool registered) {
  return std::make_unique<ModelOf<Described>>(Targets::every_position, model, registered);
}

Training training_of_described(const DescribedModel& model, int stage) {
  Training training = plain(training_of_odd_sizes(stage));
  training.build = [model] { return build_described(model); };
  training.batches = patterned_batches(model.vocabulary);
  training.sequence_length = 3;
  training.steps = 3;
  training.settings.micro_batch = 2;
  training.settings.gradient_clipping = 1;
  training.settings.optimizer.weight_decay = 0.01F;
  training.settings.zero.reduce_bucket_size = 20;
  return training;
}

double errors_beside_plain(const DescribedModel& model, const Training& training, int ranks,
                           const RankReport& report, const WeightHistory& history) {
  PlainTraining same;
  same.micro_batch = training.settings.micro_batch;
  same.sequence_length = training.sequence_length;
  same.ranks = ranks;
  same.micro_steps = training.settings.gradient_accumulation_steps;
  same.steps = training.steps;
  same.learning_rate = static_cast<double>(training.settings.optimizer.learning_rate);
  same.weight_decay = static_cast<double>(training.settings.optimizer.weight_decay);
  same.clipping = training.settings.gradient_clipping;
  same.batches = training.batches;
  const NamedWeights initial = named(training, history.initial);
  const Outcome want = plain_outcome(model, initial, same);

  Outcome got{{}, {}, named(training, history.latest)};
  for (const StepResult& step : report.steps) {
    got.losses.push_back(step.loss);
    got.norms.push_back(step.grad_norm);
  }
  constexpr double kLastPlace = 0x1p-24;
  const double of_one_rounding = distance(plain_outcome(model, nudged(initial), same), want);
  return distance(got, want) / std::max(of_one_rounding, kLastPlace);
}

std::string wrong_at(int ranks, const DescribedModel& model,
                     const std::function<void(Training&)>& change) {
  // 300 models drawn at random are at most 40 off, half of them at most 9.
  constexpr double kMostRoundings = 100;
  std::string wrong;
  std::map<bool, std::vector<std::string>> of_stage_0;  // [adds before it reduces]
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of_described(model, stage);
    if (change) change(training);
    WeightHistory history;
    const std::vector<RankReport> reports = run(ranks, with_history(training, history));
    // With accumulation stages 2 and 3 reduce each micro-step, which is another order.
    const bool accumulates = training.settings.gradient_accumulation_steps > 1;
    const auto [expected, first] =
        of_stage_0.try_emplace(accumulates && stage >= 2, bits(reports[0]));
    if (first) {  // what has its bits is as right as it
      const double off = errors_beside_plain(model, training, ranks, reports[0], history);
      if (!(off < kMostRoundings)) {
        wrong += fmt::format("{} ranks, stage {}: off by {} roundings\n", ranks, stage, off);
      }
    }
    for (const RankReport& report : reports) {
      if (bits(report) != expected->second) {
        wrong += fmt::format("{} ranks, stage {}: other bits\n", ranks, stage);
      }
      if (report.left_over.total() != 0) wrong += fmt::format("stage {}: memory left\n", stage);
    }
  }
  return wrong;
}

std::string wrong_in_any_stage(const DescribedModel& model,
                               const std::function<void(Training&)>& change) {
  std::string wrong;
  for (const int ranks : {1, 2, 3, 4}) wrong += wrong_at(ranks, model, change);
  return wrong;
}

}  // namespace zerolab::test
