// What DeepSpeed's tests hold of ZeRO, in terms of zerolab: behaviours 1 to 3, 8 to 18, 23 to 26,
// 30 and 31 of the list that docs/differences-from-deepspeed.md gives. Each at 1 to 4 ranks.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stages/partition/layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

constexpr std::array kRanks{1, 2, 3, 4};
constexpr Index kMuch = Index{1} << 40;

/// What a module sees of its weight while it runs, and of the next module's.
struct Sight {
  Index step = 0;
  VisitKind kind = VisitKind::forward;
  std::string module;
  Status own = Status::not_available, next = Status::not_available;
  std::vector<float> values;
};

/// Reads a weight of its own and notes what it sees. On `rank` 0 only, since all ranks are alike.
class Seeing : public Scripted {
 public:
  Seeing(ParameterSet& parameters, const std::string& name, Shape shape, std::vector<Sight>& sights)
      : Scripted(parameters, name, std::move(shape),
                 [](Index, const Moment& moment) { return static_cast<float>(moment.rank + 1); }),
        parameters_(parameters),
        sights_(sights) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    note(context().pass);
    return Scripted::do_forward(input);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    note(VisitKind::backward);
    return Scripted::do_backward(output_gradient);
  }

 private:
  void note(VisitKind kind) {
    if (context().recorder.rank() != 0) return;
    Parameter& own = *reads().front();
    Sight sight{context().recorder.step(), kind, name(), own.status(), {}, {}};
    const Index next = own.id() + (kind == VisitKind::backward ? -1 : 1);
    if (next >= 0 && next < static_cast<Index>(parameters_.size())) {
      sight.next = parameters_[static_cast<std::size_t>(next)].status();
    }
    const float* data = own.data;
    sight.values.assign(data, data + own.numel());
    sights_.push_back(std::move(sight));
  }

  ParameterSet& parameters_;
  std::vector<Sight>& sights_;
};

const std::vector<Shape> kShapes{{15}, {5}, {1}, {7, 3}};

/// A chain of four weights: 15, 5, 1 and 21 elements.
Training seeing(int stage, std::vector<Sight>& sights, std::vector<Shape> shapes = kShapes) {
  return plain(training_of_chain(
                   [&sights, shapes = std::move(shapes)](ParameterSet& parameters) {
                     Links links{std::make_shared<Blank>()};
                     for (std::size_t i = 0; i < shapes.size(); ++i) {
                       links.push_back(std::make_shared<Seeing>(parameters, std::to_string(i),
                                                                shapes[i], sights));
                     }
                     return links;
                   },
                   kBlankVocabulary, stage),
               1);
}

std::vector<Sight> sights_of(int ranks, Training training, std::vector<Sight>& sights,
                             Index steps) {
  sights.clear();
  training.steps = steps;
  run(ranks, training);
  return sights;
}

/// Statuses of every parameter at the end of each step, on every rank.
using Rests = std::vector<std::map<std::string, std::string, std::less<>>>;
std::vector<Rests> rests_of(int ranks, const Training& training) {
  struct Seen {
    std::map<std::string, std::string, std::less<>> now;
    Rests rests;
  };
  std::vector<Rests> all;
  for (Seen& seen : observed<Seen>(ranks, training, [](Seen&s, const Stamp&, const Event&event) {
         if (const auto* param = std::get_if<ParamEvent>(&event)) {
           s.now[std::string(param->parameter)] = param->to;
         }
         if (std::holds_alternative<StepEvent>(event)) s.rests.push_back(s.now);
       })) {
    all.push_back(std::move(seen.rests));
  }
  return all;
}

TEST_CASE("behaviour 1: a shard is ceil(numel / N) elements, trailing ranks own less or nothing",
          "[zero3]") {
  const auto real = [](Index numel, int ranks) {
    std::vector<Index> owned;
    for (int rank = 0; rank < ranks; ++rank) {
      owned.push_back(PieceLayout{numel, ranks}.owned(rank).size());
    }
    return owned;
  };
  CHECK(real(15, 2) == std::vector<Index>{8, 7});
  CHECK(real(5, 4) == std::vector<Index>{2, 2, 1, 0});
  CHECK(real(1, 3) == std::vector<Index>{1, 0, 0});
  CHECK(real(5, 1) == std::vector<Index>{5});
  CHECK(PieceLayout{15, 2}.padded() == 16);
  CHECK(PieceLayout{5, 4}.padded() == 8);
}

TEST_CASE("behaviour 2: what a module reads is bit for bit what was partitioned, padding or not",
          "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    const auto whole = sights_of(ranks, seeing(0, sights), sights, 3);
    const auto gathered = sights_of(ranks, seeing(3, sights), sights, 3);
    REQUIRE(whole.size() == gathered.size());
    REQUIRE(whole.size() == 3 * 2 * kShapes.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      INFO(ranks << " ranks, step " << whole[i].step << ", module " << whole[i].module);
      CHECK(gathered[i].values == whole[i].values);
    }
  }
}

TEST_CASE("behaviour 3: outside a module a weight has no elements, inside it is whole", "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    for (const Sight& sight : sights_of(ranks, seeing(3, sights), sights, 2)) {
      INFO(ranks << " ranks, " << sight.module << " " << name_of(sight.kind));
      CHECK(sight.own == Status::available);
      CHECK(sight.next == Status::not_available);
    }
    for (const Rests& rests : rests_of(ranks, seeing(3, sights))) {
      REQUIRE_FALSE(rests.empty());
      for (const auto& rest : rests) {
        CHECK(rest.size() == kShapes.size());
        for (const auto& [name, status] : rest) CHECK(status == "NOT_AVAILABLE");
      }
    }
  }
}

TEST_CASE("behaviour 8: flat slices are of equal size, a multiple of two elements", "[zero3]") {
  for (const int ranks : kRanks) {
    for (const std::vector<Index>& sizes :
         {std::vector<Index>{1}, std::vector<Index>{7, 3, 1}, std::vector<Index>{16, 16}}) {
      const FlatLayout layout(sizes, ranks);
      CHECK(layout.padded() % (2 * ranks) == 0);
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(layout.slice(rank).size() == layout.padded() / ranks);
        CHECK(layout.slice(rank).begin % 2 == 0);
      }
    }
  }
}

TEST_CASE("behaviour 9: ranks that own nothing train along", "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    const auto expected = bits(run(ranks, seeing(0, sights, {{1}, {1}}))[0]);
    for (const int stage : {1, 2, 3}) {
      for (const RankReport& report : run(ranks, seeing(stage, sights, {{1}, {1}}))) {
        CHECK(bits(report) == expected);
      }
    }
  }
}

TEST_CASE("behaviour 10: parameters without elements are tolerated", "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    const std::vector<Shape> shapes{{0, 4}, {3}, {0}};
    const auto expected = bits(run(ranks, seeing(0, sights, shapes))[0]);
    for (const Index persistence : {Index{0}, Index{2}}) {
      Training training = seeing(3, sights, shapes);
      training.settings.zero.param_persistence_threshold = persistence;
      training.settings.zero.prefetch_bucket_size = 3;
      CHECK(bits(run(ranks, training)[0]) == expected);
    }
  }
}

TEST_CASE("behaviour 11: in the first pass a weight is there while its module runs, and only then",
          "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    Training training = seeing(3, sights);
    training.settings.zero.prefetch_bucket_size = kMuch;
    training.settings.zero.max_reuse_distance = kMuch;
    for (const Sight& sight : sights_of(ranks, training, sights, 1)) {
      CHECK(sight.own == Status::available);
      CHECK(sight.next == Status::not_available);
    }
  }
}

TEST_CASE("behaviour 12: from the second pass on the next weight is there or on its way",
          "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    Training training = seeing(3, sights);
    training.settings.zero.prefetch_bucket_size = 30;
    for (const Sight& sight : sights_of(ranks, training, sights, 3)) {
      const bool last = (sight.module == "3" && sight.kind == VisitKind::forward) ||
                        (sight.module == "0" && sight.kind == VisitKind::backward);
      if (sight.step == 1 || last) continue;
      INFO(ranks << " ranks, step " << sight.step << ", " << sight.module);
      CHECK(sight.next != Status::not_available);
    }
  }
}

TEST_CASE("behaviour 13: without prefetch and reuse a weight goes at once, in every pass",
          "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    for (const Sight& sight : sights_of(ranks, seeing(3, sights), sights, 3)) {
      CHECK(sight.next == Status::not_available);
    }
  }
}

TEST_CASE("behaviour 14: after a step only what persists is whole", "[zero3]") {
  std::vector<Sight> sights;
  for (const int ranks : kRanks) {
    Training training = seeing(3, sights);
    training.settings.zero.param_persistence_threshold = 5;
    training.settings.zero.prefetch_bucket_size = kMuch;
    training.settings.zero.max_reuse_distance = kMuch;
    const Index persistent = run(ranks, training)[0].memory[0].steady[Category::gather_buffers];
    CHECK(persistent == 4 * (PieceLayout{5, ranks}.padded() + PieceLayout{1, ranks}.padded()));
    for (const Rests& rests : rests_of(ranks, training)) {
      for (const auto& rest : rests) {
        CHECK(rest ==
              std::map<std::string, std::string, std::less<>>{{"0.weight", "NOT_AVAILABLE"},
                                                              {"1.weight", "AVAILABLE"},
                                                              {"2.weight", "AVAILABLE"},
                                                              {"3.weight", "NOT_AVAILABLE"}});
      }
    }
    // and what persists is the updated weight, not what it was
    const auto whole = sights_of(ranks, seeing(0, sights), sights, 3);
    const auto kept = sights_of(ranks, training, sights, 3);
    REQUIRE(whole.size() == kept.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(kept[i].values == whole[i].values);
  }
}

/// Two layers whose order is the other way round in every second step.
class Swapping : public Module {
 public:
  explicit Swapping(ParameterSet& parameters)
      : Module("swapping"),
        first_(linear(parameters, "first", 4, 4)),
        second_(linear(parameters, "second", 4, 4)) {
    adopt(*first_);
    adopt(*second_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override { return last().forward(first().forward(input)); }
  Tensor do_backward(const Tensor& output_gradient) override {
    return first().backward(last().backward(output_gradient));
  }

 private:
  bool swapped() const { return context().recorder.step() % 2 == 0; }
  Module& first() { return swapped() ? *second_ : *first_; }
  Module& last() { return swapped() ? *first_ : *second_; }

  std::shared_ptr<Linear> first_, second_;
};

TEST_CASE("behaviour 15: a changed order of modules is recorded anew, with the same results",
          "[zero3]") {
  const auto swapping = [](int stage) {
    Training training = training_of_chain(
        [](ParameterSet& parameters) {
          return Links{embedding(parameters, 11, 4), std::make_shared<Swapping>(parameters),
                       linear(parameters, "head", 4, 11)};
        },
        11, stage);
    training.settings.zero.prefetch_bucket_size = kMuch;
    return training;
  };
  for (const int ranks : kRanks) {
    CHECK(bits(run(ranks, swapping(3))[0]) == bits(run(ranks, swapping(0))[0]));
    const auto notes = observed<std::vector<std::string>>(
        ranks, swapping(3), [](std::vector<std::string>& all, const Stamp&, const Event& event) {
          if (const auto* note = std::get_if<NoteEvent>(&event)) all.emplace_back(note->text);
        })[0];
    REQUIRE(notes.size() == 9);  // every step but the first
    CHECK(contains(notes[0],
                   "step 2: the order of modules has changed after 3 visits of the pass: expected "
                   "'first' (forward), got 'second' (forward)"));
  }
}

TEST_CASE("behaviour 15: training and evaluation in turn do not disturb each other's order",
          "[zero3]") {
  Training training = training_of(tiny_transformer(), 3);
  training.settings.zero.prefetch_bucket_size = 100;
  training.validation = training.batches;
  training.validation_sequences = 6;
  training.validate_every = 1;
  Training alone = training;
  alone.validate_every = 0;
  alone.validation = {};
  for (const int ranks : kRanks) {
    const auto notes = observed<int>(ranks, training, [](int& count, const Stamp&, const Event& e) {
      count += std::holds_alternative<NoteEvent>(e) ? 1 : 0;
    });
    CHECK(notes == std::vector<int>(static_cast<std::size_t>(ranks), 0));
    const RankReport report = run(ranks, training)[0];
    const RankReport undisturbed = run(ranks, alone)[0];
    CHECK(bits(report) == bits(undisturbed));
    CHECK(report.fetches == undisturbed.fetches);
  }
}

/// Runs another module on each rank; none of them reads anything, so no gather differs.
class ByRank : public Module {
 public:
  ByRank() : Module("by rank"), even_("even", {}), odd_("odd", {}) {
    adopt(even_);
    adopt(odd_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override { return chosen().forward(input); }
  Tensor do_backward(const Tensor& output_gradient) override {
    return chosen().backward(output_gradient);
  }

 private:
  Module& chosen() { return context().recorder.rank() % 2 == 0 ? even_ : odd_; }
  ChainModule even_, odd_;
};

TEST_CASE("behaviour 16: ranks that run different modules are told so, by rank and name",
          "[zero3]") {
  for (const int ranks : {2, 3, 4}) {
    const Training training = training_of_chain(
        [](ParameterSet& parameters) {
          return Links{embedding(parameters, 11, 4), std::make_shared<ByRank>(),
                       linear(parameters, "head", 4, 11)};
        },
        11, 3);
    const auto error = thrown_by([&] { run(ranks, training); });
    REQUIRE(error);
    CHECK(error->code() == Code::module_order);
    CHECK(contains(error->what(),
                   "visit 4 of the pass is\n  rank 0: 'even' (forward)\n  rank 1: "
                   "'odd' (forward)"));
  }
}

/// One layer, applied k times, between two others.
Training repeated(int stage, int times) {
  return training_of_chain(
      [times](ParameterSet& parameters) {
        Links links{embedding(parameters, 11, 4)};
        const auto layer = linear(parameters, "layer", 4, 4);
        links.insert(links.end(), static_cast<std::size_t>(times), layer);
        links.push_back(linear(parameters, "head", 4, 11));
        return links;
      },
      11, stage);
}

TEST_CASE("behaviour 17: a layer that runs k times, forward and then backward, works", "[zero3]") {
  for (const int ranks : kRanks) {
    const auto expected = bits(run(ranks, repeated(0, 4))[0]);
    for (const Index bucket : {Index{0}, Index{30}, kMuch}) {
      Training training = repeated(3, 4);
      training.settings.zero.prefetch_bucket_size = bucket;
      CHECK(bits(run(ranks, training)[0]) == expected);
    }
  }
}

TEST_CASE("behaviour 18: a tied parameter is gathered for both users and reduced once", "[zero3]") {
  for (const int ranks : kRanks) {
    struct Counts {
      int gathers = 0, reductions = 0;
    };
    Training training = training_of(tiny_transformer(), 3);
    training.settings.zero.reduce_bucket_size = 1;
    training.steps = 1;
    const Counts counts =
        observed<Counts>(ranks, training, [](Counts& all, const Stamp&, const Event& event) {
          const auto* param = std::get_if<ParamEvent>(&event);
          if (param != nullptr && param->parameter == "token_embedding.weight" &&
              param->to == "INFLIGHT") {
            all.gathers +=
                param->cause == (all.gathers == 0 || all.gathers == 3 ? "fetch" : "external") ? 1
                                                                                              : 100;
          }
          const auto* comm = std::get_if<CommEvent>(&event);
          if (comm != nullptr && reduces(*comm) && comm->owner == "token_embedding.weight") {
            ++all.reductions;
          }
        })[0];
    CHECK(counts.gathers == 4);
    CHECK(counts.reductions == 1);
  }
}

}  // namespace
}  // namespace zerolab::test
