// GatheredParameters, in every stage at 1 to 4 ranks; behaviours 4 to 6 of DeepSpeed's own tests.

#include "stages/engine/gathered_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>

#include "stages/stages.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/rank.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kRanks{1, 2, 3, 4};

/// Runs the body on every rank of a training in this stage; what it returns, by rank.
template <typename Body>
auto on_ranks(int ranks, int stage, Body body) {
  const Training training = training_of_odd_sizes(stage);
  return run_ranks(ranks, [&](Communicator& communicator) {
    Rank rank(communicator, training);
    return body(rank);
  });
}

template <typename Check>
void everywhere(Check check) {
  for (const int stage : kStages) {
    for (const int ranks : kRanks) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      check(stage, ranks);
    }
  }
}

TEST_CASE("in a scope parameters are whole, the same on every rank and in every stage",
          "[engine]") {
  const auto expected =
      on_ranks(1, 0, [](Rank& rank) { return rank.values("embedding.weight"); })[0];
  REQUIRE(expected.size() == 33);
  everywhere([&](int stage, int ranks) {
    for (const auto& values : on_ranks(ranks, stage, [](Rank& rank) {
           std::vector<float> seen = rank.values("embedding.weight");
           if (!rank.rests()) seen.clear();
           return seen;
         })) {
      CHECK(values == expected);
    }
  });
}

TEST_CASE("behaviour 4: what the named rank writes is what every rank has and trains on",
          "[engine]") {
  // The last rank writes; the others write something else, which is lost.
  const auto write_and_train = [](Rank& rank) {
    const int owner = rank.runtime.ranks() - 1;
    {
      GatheredParameters scope(rank.runtime, rank.engine.stage(),
                               rank.parameters({"head.weight", "norm.bias"}), owner);
      const float value = rank.runtime.rank() == owner ? 0.25F : 99;
      rank.device.fill(rank.parameter("head.weight").data, 55, value);
      rank.device.fill(rank.parameter("norm.bias").data, 3, 2 * value);
    }
    const bool rests = rank.rests();
    RankReport report;
    const bool right = rank.values("head.weight") == std::vector<float>(55, 0.25F) &&
                       rank.values("norm.bias") == std::vector<float>(3, 0.5F);
    for (int step = 0; step < 3; ++step) {
      report.steps.push_back(rank.engine.step(rank.training.batches));
    }
    return rests && right ? bits(report) : std::vector<std::string>{};
  };
  for (const int ranks : kRanks) {
    const auto expected = on_ranks(ranks, 0, write_and_train)[0];
    REQUIRE(expected.size() == 3);
    for (const int stage : kStages) {
      for (const auto& got : on_ranks(ranks, stage, write_and_train)) CHECK(got == expected);
    }
  }
}

TEST_CASE("B13: a weight initialised from outside starts the training there", "[cases]") {
  const auto loss_from = [](int ranks, int stage) {
    return on_ranks(ranks, stage, [](Rank& rank) {
      {
        GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                 rank.parameters({"embedding.weight"}), 0);
        if (rank.runtime.rank() == 0) {
          rank.device.fill(rank.parameter("embedding.weight").data, 33, 0.5F);
        }
      }
      const bool whole = rank.values("embedding.weight") == std::vector<float>(33, 0.5F);
      rank.engine.step(rank.training.batches);
      return std::pair{whole, rank.engine.evaluate(rank.training.batches, 12)};
    })[0];
  };
  for (const int ranks : kRanks) {
    const double expected = loss_from(ranks, 0).second;
    for (const int stage : kStages) {
      const auto [whole, loss] = loss_from(ranks, stage);
      CHECK(whole);
      CHECK(loss == expected);
    }
  }
}

TEST_CASE("B09: writing a weight that was gathered for reading is told on all ranks", "[cases]") {
  everywhere([](int stage, int ranks) {
    const auto told = on_ranks(ranks, stage, [](Rank& rank) {
      const std::vector<float> before = rank.values("head.weight");
      std::string message;
      try {
        GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                 rank.parameters({"head.weight", "head.bias"}));
        if (rank.runtime.rank() == rank.runtime.ranks() - 1) {
          rank.parameter("head.weight").data[0] += 1;
        }
      } catch (const Error& error) {
        message = error.what();
      }
      // in stage 3 the shards have what they had
      const bool same =
          rank.training.settings.zero.stage < 3 || rank.values("head.weight") == before;
      return same && rank.rests() ? message : "not at rest: " + message;
    });
    for (const std::string& message : told) {
      CHECK(message ==
            "ZL412: gathered parameters were written, though their scope was opened for reading\n"
            "  'head.weight' by rank " +
                std::to_string(ranks - 1) +
                "\n  way out: name the rank whose values everybody is to get: "
                "GatheredParameters(..., modifier_rank)");
    }
  });
}

TEST_CASE("behaviour 5: an edit that nobody owns raises on every rank, whoever made it",
          "[engine]") {
  for (const int stage : kStages) {
    for (const int writer : {0, 1, 2}) {
      const auto raised = on_ranks(3, stage, [writer](Rank& rank) {
        const auto error = thrown_by([&] {
          GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                   rank.parameters({"embedding.weight"}));
          if (rank.runtime.rank() == writer) {
            auto values = read_in_scope(rank.runtime, rank.parameter("embedding.weight"));
            values[32] = 7;
            write_in_scope(rank.runtime, rank.parameter("embedding.weight"), values);
          }
        });
        return error && error->code() == Code::edit_without_owner;
      });
      CHECK(raised == std::vector<bool>(3, true));
    }
  }
}

TEST_CASE("behaviour 7: weights that every rank would start differently end as rank 0's",
          "[engine]") {
  for (const int ranks : kRanks) {
    for (const int stage : kStages) {
      const auto seen = on_ranks(ranks, stage, [](Rank& rank) {
        {
          GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                   rank.parameters({"embedding.weight", "head.bias"}), 0);
          for (const std::string name : {"embedding.weight", "head.bias"}) {
            Parameter& parameter = rank.parameter(name);
            const std::vector<float> values(static_cast<std::size_t>(parameter.numel()),
                                            static_cast<float>(100 + rank.runtime.rank()));
            write_in_scope(rank.runtime, parameter, values);
          }
        }
        return std::pair{rank.values("embedding.weight"), rank.values("head.bias")};
      });
      for (const auto& [embedding, bias] : seen) {
        CHECK(embedding == std::vector<float>(33, 100));
        CHECK(bias == std::vector<float>(11, 100));
      }
    }
  }
}

TEST_CASE("behaviour 6: scopes may be nested, but not hold the same parameter", "[engine]") {
  everywhere([](int stage, int ranks) {
    for (const bool fine : on_ranks(ranks, stage, [](Rank& rank) {
           Stage& of_rank = rank.engine.stage();
           bool refused = false;
           bool whole = false;
           {
             GatheredParameters outer(rank.runtime, of_rank,
                                      rank.parameters({"norm.weight", "norm.weight"}));
             {
               GatheredParameters inner(rank.runtime, of_rank, rank.parameters({"head.bias"}));
               whole = rank.parameter("norm.weight").status() == Status::available &&
                       rank.parameter("head.bias").status() == Status::available;
             }
             const auto error = thrown_by([&] {
               GatheredParameters again(rank.runtime, of_rank,
                                        rank.parameters({"head.bias", "norm.weight"}));
             });
             refused = error && error->code() == Code::held_by_scope &&
                       contains(error->what(), "parameter 'norm.weight' on rank ");
             whole = whole && rank.parameter("norm.weight").status() == Status::available;
           }
           return refused && whole && rank.rests();
         })) {
      CHECK(fine);
    }
  });
}

TEST_CASE("a scope may be open while the model is evaluated, not while it trains", "[engine]") {
  everywhere([](int stage, int ranks) {
    for (const bool fine : on_ranks(ranks, stage, [](Rank& rank) {
           rank.engine.step(rank.training.batches);
           const double expected = rank.engine.evaluate(rank.training.batches, 6);
           bool same = false;
           std::optional<Error> error;
           {
             GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                      rank.parameters({"head.weight", "embedding.weight"}));
             same = rank.engine.evaluate(rank.training.batches, 6) == expected;
             error = thrown_by([&] { rank.engine.step(rank.training.batches); });
           }
           rank.engine.step(rank.training.batches);
           return same && error && error->code() == Code::held_by_scope && rank.rests();
         })) {
      CHECK(fine);
    }
  });
}

TEST_CASE("a scope that an exception leaves lets go, without talking to the other ranks",
          "[engine]") {
  everywhere([](int stage, int ranks) {
    for (const bool fine : on_ranks(ranks, stage, [](Rank& rank) {
           bool caught = false;
           try {
             GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                      rank.parameters({"head.weight"}), 0);
             throw std::runtime_error("enough");
           } catch (const std::runtime_error&) {
             caught = true;
           }
           return caught && rank.rests() && rank.comm.totals().traffic.count(Op::broadcast) == 0;
         })) {
      CHECK(fine);
    }
  });
}

/// Reads another module's parameter, undeclared, in a scope of its own.
class GathersItself : public Module {
 public:
  using Open = std::function<std::unique_ptr<GatheredParameters>(Parameter&)>;

  GathersItself(Parameter& foreign, const Open& open)
      : Module("gathers itself"), foreign_(foreign), open_(open) {}

 protected:
  Tensor do_forward(const Tensor& input) override { return plus_foreign(input); }
  Tensor do_backward(const Tensor& output_gradient) override {
    add_gradient(foreign_, [&](float* out) {
      device().sum_rows(output_gradient.rows(), output_gradient.width(), output_gradient.floats(),
                        out);
    });
    return output_gradient;
  }

 private:
  Tensor plus_foreign(const Tensor& input) {
    const auto scope = open_ ? open_(foreign_) : nullptr;
    const float* bias = weight(foreign_);
    Tensor output = activation(input.shape(), "output");
    for (Index i = 0; i < input.numel(); ++i) {
      output.floats()[i] = input.floats()[i] + bias[i % input.width()];
    }
    return output;
  }

  Parameter& foreign_;
  const Open& open_;
};

/// Every rank has its own way to open a scope, which only works once there is an engine.
RankReport train_with_scopes_inside(Communicator& communicator, int stage, bool declared) {
  GathersItself::Open open;
  Training training = training_of_chain(
      [&open, declared](ParameterSet& parameters) {
        Links links{embedding(parameters, 11, 5), linear(parameters, "layer", 5, 5)};
        Parameter& lent = parameters.at("layer.bias");
        links.push_back(std::make_shared<GathersItself>(lent, open));
        if (declared) register_external_parameter(*links.back(), lent);
        links.push_back(linear(parameters, "head", 5, 11));
        return links;
      },
      11, stage);
  if (!declared) {
    training.prepare = [&open](Runtime& runtime, Engine& engine) {
      open = [&](Parameter& parameter) {
        return std::make_unique<GatheredParameters>(runtime, engine.stage(),
                                                    std::vector<Parameter*>{&parameter});
      };
    };
  }
  Recorder recorder(communicator.rank());
  return train(communicator, recorder, training);
}

TEST_CASE("B01: a layer may gather what it does not own by itself, instead of declaring it",
          "[cases]") {
  for (const int ranks : kRanks) {
    const auto expected = bits(run_ranks(ranks, [](Communicator& communicator) {
      return train_with_scopes_inside(communicator, 0, true);
    })[0]);
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      const auto reports = run_ranks(ranks, [stage](Communicator& communicator) {
        return train_with_scopes_inside(communicator, stage, false);
      });
      for (const RankReport& report : reports) CHECK(bits(report) == expected);
    }
  }
}

TEST_CASE("B13: without a scope nobody writes a weight, in any stage", "[cases]") {
  everywhere([](int stage, int ranks) {
    for (const bool right : on_ranks(ranks, stage, [](Rank& rank) {
           Parameter& embedding = rank.parameter("embedding.weight");
           const auto error = thrown_by([&] { write_in_scope(rank.runtime, embedding, {0.5F}); });
           GatheredParameters scope(rank.runtime, rank.engine.stage(), {&embedding});
           return error && error->code() == Code::parameter_not_available &&
                  contains(error->what(), "'embedding.weight' on rank ") &&
                  contains(error->way_out(), "GatheredParameters") &&
                  read_in_scope(rank.runtime, embedding).size() == 33;
         })) {
      CHECK(right);
    }
  });
}

TEST_CASE("a rank that there is not cannot be the one that writes", "[engine]") {
  for (const int modifier : {-1, 2}) {
    const auto error = on_ranks(2, 3, [&](Rank& rank) {
      return thrown_by([&] {
        GatheredParameters scope(rank.runtime, rank.engine.stage(),
                                 rank.parameters({"head.weight"}), modifier);
      });
    })[0];
    REQUIRE(error);
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->what(), "there are 2 ranks"));
  }
}

TEST_CASE("in 16 bits what a scope writes becomes the master, and what it leaves keeps its own",
          "[engine]") {
  for (const int ranks : {1, 3, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      INFO(ranks << " ranks, stage " << stage);
      Training training = training_of_odd_sizes(stage);
      training.settings.dtype = Dtype::bf16;
      const auto right = run_ranks(ranks, [&](Communicator& communicator) {
        Rank rank(communicator, training);
        Parameter& table = rank.parameter("embedding.weight");
        const auto masters = [&] {
          std::map<Index, float> result;
          for (const OwnedSlice& slice : rank.engine.stage().owned()) {
            if (slice.parameter != &table) continue;
            for (Index i = slice.range.begin; i < slice.range.end; ++i) {
              result[i] = slice.master[i - slice.range.begin];
            }
          }
          return result;
        };
        std::map<Index, float> expected = masters();
        const int owner = ranks - 1;
        {
          GatheredParameters scope(rank.runtime, rank.engine.stage(), {&table}, owner);
          if (communicator.rank() == owner) {
            std::vector<float> values = read_in_scope(rank.runtime, table);
            values[7] = 0.3F;
            write_in_scope(rank.runtime, table, values);
          }
        }
        if (expected.count(7) > 0) expected[7] = widened(rounded<Bf16>(0.3F));
        const bool kept = masters() == expected;
        rank.engine.step(training.batches);
        const float now = rank.values("embedding.weight")[7];  // all ranks together
        return kept && std::abs(now - 0.3F) < 0.02F;
      });
      CHECK(right == std::vector<bool>(static_cast<std::size_t>(ranks), true));
    }
  }
}

}  // namespace
}  // namespace zerolab::test
