// Kind g of docs/cases.md, and B36: sizes that a partition must not take for granted.

#include <cmath>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/naive_bigram.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};

/// Differs from element to element and from rank to rank.
float product_of_positions(Index element, const Moment& moment) {
  return static_cast<float>((element + 1) * (moment.rank + 1));
}

/// Its mean over the ranks, for parameters of these sizes.
Weights mean_products(const std::vector<Index>& sizes, int ranks) {
  Weights means;
  for (const Index size : sizes) {
    means.emplace_back();
    for (Index i = 1; i <= size; ++i) {
      means.back().push_back(static_cast<float>(i * (ranks + 1)) / 2);
    }
  }
  return means;
}

double norm_of(const Weights& weights) {
  double squares = 0;
  for (const auto& values : weights) {
    for (const float value : values) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  return std::sqrt(squares);
}

// --- B36 -----------------------------------------------------------------------------------------

/// Weights of 5, 7 and 33 elements over four ranks. Stages 0 to 2 hold them in one buffer of 48 and
/// cut it in slices of 12; stage 3 holds pieces of 2, 2 and 9. The last weight has a part on every
/// rank, so positions are counted from there.
std::vector<Index> padding_after_last_slice(int stage, int rank) {
  switch (stage) {
    case 0:
      return {33, 34, 35};
    case 3:
      if (rank == 2) return {-3};  // of the 5 elements the third rank has one
      if (rank == 3) return {-4, -3, -1, 6, 7, 8};
      return {};
    default:
      return rank == 3 ? std::vector<Index>{9, 10, 11} : std::vector<Index>{};
  }
}

/// Counts elements of padding that are not zero after an update, in every state that it can reach.
class PaddingWatch : public StageWrapper {
 public:
  PaddingWatch(std::unique_ptr<Stage> stage, Runtime& runtime, int& dirty)
      : StageWrapper(std::move(stage), runtime),
        padding_(padding_after_last_slice(runtime.settings.zero.stage, runtime.rank())),
        dirty_(dirty) {}

  void publish() override {
    const OwnedSlice last = owned().back();
    for (const float* state :
         {last.gradient.floats(), last.master, last.moments[0], last.moments[1]}) {
      for (const Index position : padding_) {
        if (state[position] != 0) ++dirty_;  // NaN is not zero either
      }
    }
    StageWrapper::publish();
  }

 private:
  std::vector<Index> padding_;
  int& dirty_;
};

// --- B89 -----------------------------------------------------------------------------------------

/// A layer 256 -> 1, whose bias is the third parameter and has one element.
Training with_scalar_bias(int stage) {
  return training_of_chain(
      [](ParameterSet& parameters) {
        return Links{embedding(parameters, kOddVocabulary, 256),
                     std::make_shared<Linear>(parameters, "narrow", 256, 1, Initial::normal(0.06)),
                     linear(parameters, "head", 1, kOddVocabulary)};
      },
      kOddVocabulary, stage);
}

/// Counts the elements of one parameter that this rank owns.
class OwnershipWatch : public StageWrapper {
 public:
  OwnershipWatch(std::unique_ptr<Stage> stage, Runtime& runtime, Index parameter, Index& owned)
      : StageWrapper(std::move(stage), runtime), parameter_(parameter), owned_(owned) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    for (const OwnedSlice& slice : owned()) {
      if (slice.parameter->id() == parameter_) owned_ += slice.range.size();
    }
  }

 private:
  Index parameter_;
  Index& owned_;
};

/// How many elements of this parameter each rank owns.
std::vector<Index> owned_elements(int ranks, const Training& training, Index parameter) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Index owned = 0;
    Training watched = with_stage<OwnershipWatch>(training, parameter, std::ref(owned));
    watched.steps = 0;
    Recorder recorder(communicator.rank());
    train(communicator, recorder, watched);
    return owned;
  });
}

// --- B95 -----------------------------------------------------------------------------------------

/// Weights of 10, 7 and 64 elements, the last one used twice.
Training with_tied_last(int stage) {
  Training training = plain(training_of_chain(
      [](ParameterSet& parameters) {
        Links links{std::make_shared<Blank>()};
        for (const Index size : {10, 7, 64}) {
          links.push_back(std::make_shared<Scripted>(parameters, std::to_string(size), Shape{size},
                                                     product_of_positions));
        }
        links.push_back(
            std::make_shared<Scripted>("again", parameters.at("64.weight"), product_of_positions));
        return links;
      },
      kBlankVocabulary, stage));
  training.steps = 1;
  training.settings.zero.reduce_bucket_size = 64;
  return training;
}

}  // namespace

TEST_CASE("B36: padding is zero in every state after every step and leaks into no sum", "[cases]") {
  const Weights mean = mean_products({5, 7, 33}, 4);
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_script({{5}, {7}, {33}}, product_of_positions, stage);
    training.settings.zero.reduce_bucket_size = 16;
    training.settings.optimizer.type = OptimizerSettings::Type::adam;
    training.settings.optimizer.weight_decay = 0.1F;
    std::array<int, 4> dirty{};
    WeightHistory history;
    training = with_history(training, history);
    const auto reports = run_ranks(4, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      int& mine = dirty[static_cast<std::size_t>(communicator.rank())];
      return train(communicator, recorder, with_stage<PaddingWatch>(training, std::ref(mine)));
    });
    CHECK(dirty == std::array<int, 4>{});
    CHECK(history.gradient == mean);
    for (const StepResult& step : reports[0].steps) {
      CHECK(std::abs(step.grad_norm / norm_of(mean) - 1) < 1e-12);
    }
  }
}

TEST_CASE("B89: a bias of one element has one owner, whatever the number of ranks", "[cases]") {
  for (const int ranks : {2, 4, 8}) {
    WeightHistory joint;
    run(1, with_history(alone(plain(with_scalar_bias(0)), ranks), joint));
    std::vector<std::string> of_stage_0;
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      WeightHistory history;
      const auto now = bits(run(ranks, with_history(plain(with_scalar_bias(stage)), history))[0]);
      CHECK(largest_difference(history.latest, joint.latest) < 1e-6);
      if (stage == 0) of_stage_0 = now;
      CHECK(now == of_stage_0);

      // of the flat buffer, the bias is behind 11 * 256 + 256 elements: in the last slice
      std::vector<Index> owners(static_cast<std::size_t>(ranks), stage == 0 ? 1 : 0);
      if (stage == 1 || stage == 2) owners.back() = 1;
      if (stage == 3) owners.front() = 1;
      CHECK(owned_elements(ranks, with_scalar_bias(stage), 2) == owners);
    }
  }
}

TEST_CASE("B89: a model of one scalar trains on eight ranks", "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    WeightHistory history;
    run(8, with_history(training_of_script({{1}}, product_of_positions, stage), history));
    CHECK(history.gradient == Weights{{4.5F}});
    CHECK(std::abs(history.initial[0][0] - history.latest[0][0] - 45) < 1e-4);
  }
}

TEST_CASE("B90: weights without elements are trained past, and nothing is sent for them",
          "[cases]") {
  const Shape empty{0, 8};
  for (const std::vector<Shape>& shapes : std::vector<std::vector<Shape>>{
           {empty, {8}, {24}}, {{8}, empty, {24}}, {{8}, {24}, empty}, {empty}}) {
    std::vector<Index> sizes;
    for (const Shape& shape : shapes) sizes.push_back(numel(shape));
    for (const int ranks : {1, 2, 4}) {
      for (const int stage : kStages) {
        INFO("stage " << stage << ", " << ranks << " ranks, " << shapes.size() << " weights");
        const Training training = training_of_script(shapes, product_of_positions, stage);
        const Weights mean = mean_products(sizes, ranks);
        WeightHistory history;
        const auto reports = run(ranks, with_history(training, history));
        CHECK(history.gradient == mean);
        CHECK(std::abs(reports[0].steps[9].grad_norm - norm_of(mean)) < 1e-9);

        const auto of_no_size =
            observed<int>(ranks, training, [](int& count, const Stamp& stamp, const Event& event) {
              const auto* comm = std::get_if<CommEvent>(&event);
              if (comm != nullptr && comm->elements == 0 && stamp.phase != Phase::set_up) ++count;
            });
        CHECK(of_no_size == std::vector<int>(static_cast<std::size_t>(ranks), 0));
      }
    }
  }
  const auto model = training_of_script({{8}, empty}, product_of_positions, 0).build();
  CHECK(model->parameters().at("1.weight").shape() == empty);
}

TEST_CASE("B92: a rank without a part of any weight takes part all the same", "[cases]") {
  // five elements on eight ranks: five ranks own nothing in stages 1 to 3
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_script({{3, 1}, {1, 1}, {1}}, product_of_positions, stage);
    training.settings.optimizer.type = OptimizerSettings::Type::adam;
    WeightHistory history;
    const auto reports = run(8, with_history(training, history));
    CHECK(history.gradient == mean_products({3, 1, 1}, 8));
    for (const RankReport& report : reports) CHECK(bits(report) == bits(reports[0]));
    // Adam's step on a gradient that stays the same is the learning rate
    for (std::size_t p = 0; p < 3; ++p) {
      for (std::size_t i = 0; i < history.latest[p].size(); ++i) {
        CHECK(std::abs(history.initial[p][i] - history.latest[p][i] - 10) < 1e-4);
      }
    }
  }
}

TEST_CASE("B94: a weight larger than the bucket is reduced alone, from last to first", "[cases]") {
  const auto elements = [](int stage) {
    Training training = training_of_script({{1000}, {3}, {3}, {1000}}, product_of_positions, stage);
    training.settings.zero.reduce_bucket_size = 10;
    training.steps = 1;
    return reductions(2, training);
  };
  // Stages 0 to 2 pad the whole, 2006 elements, to a multiple of 4; stage 3 pads each weight.
  for (const int stage : {0, 1, 2}) CHECK(elements(stage) == std::vector<Index>{1002, 6, 1000});
  CHECK(elements(3) == std::vector<Index>{1000, 8, 1000});
}

TEST_CASE("B95: a bucket that ends before a tied weight needs no divisible size", "[cases]") {
  for (const int ranks : {2, 3, 5, 7}) {
    Weights mean = mean_products({10, 7, 64}, ranks);
    for (float& value : mean[2]) value *= 2;
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      WeightHistory history;
      run(ranks, with_history(with_tied_last(stage), history));
      CHECK(largest_difference(history.gradient, mean) < 1e-6);

      const auto pad = [](Index size, Index multiple) {
        return (size + multiple - 1) / multiple * multiple;
      };
      const std::vector<Index> expected =
          stage < 3 ? std::vector<Index>{pad(81, 2 * ranks) - 17, 17}
                    : std::vector<Index>{pad(64, ranks), pad(7, ranks) + pad(10, ranks)};
      CHECK(reductions(ranks, with_tied_last(stage)) == expected);
    }
  }
}

TEST_CASE("B96: one rank computes what plain training computes and sends nothing", "[cases]") {
  constexpr Index kWidth = 3;
  for (const int stage : kStages) {
    INFO("stage " << stage);
    const Training training = plain(training_of_chain(bigram(7, kWidth), 7, stage));
    WeightHistory history;
    const RankReport report = run(1, with_history(training, history))[0];
    NaiveBigram naive(history.initial, 7, kWidth);
    for (Index step = 1; step <= 10; ++step) {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(training.settings.micro_batch));
      std::vector<std::int32_t> targets(tokens.size());
      training.batches(step, 0, training.settings.micro_batch, 1, tokens.data(), targets.data());
      const double loss = naive.step(tokens, targets, 0.1F);
      const StepResult& result = report.steps[static_cast<std::size_t>(step - 1)];
      CHECK(std::abs(result.loss / loss - 1) < 1e-6);
      CHECK(std::abs(result.grad_norm / naive.gradient_norm() - 1) < 1e-6);
    }
    CHECK(largest_difference(history.latest, naive.weights()) < 1e-6);

    for (const auto& [op, traffic] : report.comm.traffic) CHECK(traffic.bytes_sent == 0);
    const int moves = observed<int>(1, training, [](int& count, const Stamp&, const Event& event) {
      if (std::holds_alternative<ParamEvent>(event)) ++count;
    })[0];
    // Stages 0 to 2 set three parameters up; 1 and 2 publish them, out and back, ten times. Stage 3
    // fetches, has and lets go each of the three in forward and in backward.
    CHECK(moves == std::array{3, 3 + 60, 3 + 60, 10 * 2 * 3 * 3}[static_cast<std::size_t>(stage)]);
  }
}
