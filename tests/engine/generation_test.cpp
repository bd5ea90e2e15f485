#include "stages/engine/generation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "stages/base/philox.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "stages/engine/summary.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/given_weights.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kRanks{1, 2, 3, 4};

/// Without the narrow layers of tiny_mlp(), so that what it sees makes a difference.
ModelDescription small_mlp() {
  ModelDescription model = tiny_mlp();
  model.hidden_sizes = {17};
  return model;
}

constexpr std::array kModels{tiny_transformer, small_mlp};  // windows of 7 and of 3 tokens
constexpr Index kCount = 60;                                // bytes, many windows

/// From weights so large that every byte in the window makes a difference.
Training with_large_weights(const ModelDescription& model, int stage) {
  return with_weights(training_of(model, stage), [](const Parameter& parameter, Index element) {
    const Philox random(17);
    return almost_normal(
        random(static_cast<std::uint64_t>(parameter.id()), static_cast<std::uint64_t>(element)),
        0.3F);
  });
}

Sampling sampling_of(std::string prompt, double temperature = 1) {
  return {.count = kCount,
          .temperature = temperature,
          .top_k = 0,
          .seed = 5,
          .prompt = std::move(prompt)};
}

/// Calls body(runtime, engine, training) on every rank, ready to train; what it returns, by rank.
template <typename Body>
auto on_ranks(int ranks, const Training& training, Body body) {
  using Result = std::invoke_result_t<Body&, Runtime&, Engine&, const Training&>;
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    Result result;
    Training mine = training;
    mine.steps = 0;
    mine.prepare = [&](Runtime& runtime, Engine& engine) {
      result = body(runtime, engine, training);
    };
    train(communicator, recorder, mine);
    return result;
  });
}

/// Everything is as between two steps.
bool rests(const Runtime& runtime, Engine& engine) {
  const Status at_rest =
      runtime.settings.zero.stage == 3 ? Status::not_available : Status::available;
  for (const Parameter& each : engine.model().parameters()) {
    if (each.status() != at_rest || each.active() != 0) return false;
  }
  return runtime.ledger.live()[Category::gather_buffers] == 0;
}

std::vector<std::string> texts_of(int ranks, const Training& training, const Sampling& sampling) {
  return on_ranks(ranks, training, [&](Runtime&, Engine& engine, const Training& of) {
    return generate(engine, of.vocab_size, sampling);
  });
}

std::string text_of(const ModelDescription& model, const Sampling& sampling) {
  return texts_of(1, with_large_weights(model, 0), sampling)[0];
}

TEST_CASE("the same weights write the same text in every stage, on any number of ranks",
          "[engine]") {
  for (const auto& model : kModels) {
    const std::string expected = text_of(model(), sampling_of("\1\2"));
    REQUIRE(expected.size() == kCount);
    CHECK(std::set<char>(expected.begin(), expected.end()).size() > 3);
    for (const char byte : expected) CHECK(byte < model().vocab_size);
    for (const int stage : kStages) {
      for (const int ranks : kRanks) {
        INFO("stage " << stage << ", " << ranks << " ranks");
        for (const std::string& text :
             texts_of(ranks, with_large_weights(model(), stage), sampling_of("\1\2"))) {
          CHECK(text == expected);
        }
      }
    }
  }
}

/// Two steps and a text, twice.
std::vector<std::string> in_turn(Runtime& runtime, Engine& engine, const Training& training,
                                 bool generates) {
  RankReport report;
  std::string texts;
  bool always_at_rest = true;
  for (int turn = 0; turn < 2; ++turn) {
    for (int step = 0; step < 2; ++step) report.steps.push_back(engine.step(training.batches));
    if (generates) texts += generate(engine, training.vocab_size, sampling_of("\1"));
    always_at_rest = always_at_rest && rests(runtime, engine);
  }
  std::vector<std::string> result = bits(report);
  result.push_back(always_at_rest ? "at rest" : "something is left");
  if (generates) result.push_back(texts);
  return result;
}

TEST_CASE("training and generating in turn changes no bit and leaves nothing gathered",
          "[engine]") {
  for (const auto& model : kModels) {
    for (const int ranks : kRanks) {
      std::string expected;
      for (const int stage : kStages) {
        INFO("stage " << stage << ", " << ranks << " ranks");
        const Training training = training_of(model(), stage);
        const auto run_in_turn = [&](bool generates) {
          return on_ranks(ranks, training, [&](Runtime& runtime, Engine& engine, const auto& of) {
            return in_turn(runtime, engine, of, generates);
          });
        };
        const auto without = run_in_turn(false);
        for (auto with : run_in_turn(true)) {
          const std::string texts = with.back();
          if (expected.empty()) expected = texts;
          CHECK(texts == expected);
          with.pop_back();
          CHECK(with == without[0]);
          CHECK(with.back() == "at rest");
        }
      }
    }
  }
}

TEST_CASE("a training generates when it is due, and counts that apart from its steps", "[engine]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of(tiny_transformer(), stage);
    training.steps = 5;
    training.validation = training.batches;
    training.validation_sequences = 6;
    const RankReport without = run(3, training)[0];
    training.generate = sampling_of("\1");
    training.generate_every = 2;
    std::vector<std::string> told;
    const std::vector<RankReport> reports = run_ranks(3, [&](Communicator& communicator) {
      Training mine = training;
      if (communicator.rank() == 0) {
        mine.on_text = [&](const Generation& generation) { told.push_back(generation.text); };
      }
      Recorder recorder(communicator.rank());
      return train(communicator, recorder, mine);
    });
    const RankReport& with = reports[0];
    CHECK(bits(with) == bits(without));
    CHECK(with.validation[0].loss == without.validation[0].loss);
    CHECK(to_json(with.comm.traffic) == to_json(without.comm.traffic));
    CHECK(to_json(with.memory[0]) == to_json(without.memory[0]));
    CHECK(with.left_over.total() == 0);
    CHECK(without.generation_comm.traffic.empty());
    CHECK(with.generation_comm.traffic.empty() == (stage < 3));

    std::vector<Index> steps;
    std::vector<std::string> texts;
    for (const Generation& generation : with.generations) {
      steps.push_back(generation.step);
      texts.push_back(generation.text);
    }
    CHECK(steps == std::vector<Index>{2, 4, 5});
    CHECK(told == texts);
    CHECK(texts[0] != texts[2]);  // it has learned
    training.generate_every = 0;
    const RankReport at_the_end = run(1, training)[0];
    REQUIRE(at_the_end.generations.size() == 1);
    CHECK(at_the_end.generations[0].step == 5);
  }
}

/// The largest of the logits behind the whole window, without padding; of equal ones the first.
std::int32_t greedy_by_hand(Engine& engine, const std::vector<std::int32_t>& window) {
  const auto logits = engine.logits_behind(window, static_cast<Index>(window.size()) - 1);
  std::size_t best = 0;
  for (std::size_t token = 1; token < logits.size(); ++token) {
    if (logits[token] > logits[best]) best = token;
  }
  return static_cast<std::int32_t>(best);
}

TEST_CASE("without temperature each byte is the most likely behind the last tokens", "[engine]") {
  for (const auto& model : kModels) {
    const auto length = static_cast<std::size_t>(model().sequence_length);
    const bool whole_windows = model().type == ModelDescription::Type::mlp;
    const auto by_hand = [&](Runtime&, Engine& engine, const Training& training) {
      for (int step = 0; step < 50; ++step) engine.step(training.batches);
      std::vector<std::int32_t> text{3};
      for (int i = 0; i < kCount; ++i) {
        std::vector<std::int32_t> window = text;
        while (whole_windows && window.size() < length) window.insert(window.begin(), '\n');
        if (window.size() > length)
          window = {window.end() - static_cast<Index>(length), window.end()};
        text.push_back(greedy_by_hand(engine, window));
      }
      const std::string expected(text.begin() + 1, text.end());
      const std::string got = generate(engine, training.vocab_size, sampling_of("\3", 0));
      return std::vector{expected, got};
    };
    const auto texts = on_ranks(2, training_of(model(), 3), by_hand)[1];
    CHECK(texts[1] == texts[0]);
    CHECK(std::set<char>(texts[0].begin(), texts[0].end()).size() > 1);
  }
}

/// The first byte behind the prompt, for many seeds: what differs shows in one of them.
std::string first_bytes(const ModelDescription& model, const std::string& prompt) {
  return on_ranks(1, with_large_weights(model, 0), [&](Runtime&, Engine& engine, const auto& of) {
    std::string bytes;
    Sampling sampling = sampling_of(prompt);
    sampling.count = 1;
    for (sampling.seed = 0; sampling.seed < 100; ++sampling.seed) {
      bytes += generate(engine, of.vocab_size, sampling);
    }
    return bytes;
  })[0];
}

TEST_CASE("a model sees the last tokens of its window, and a newline where there is no prompt",
          "[engine]") {
  const std::string history = "\1\2\3\4\5\6\7";
  for (const auto& model : kModels) {
    const auto length = static_cast<std::size_t>(model().sequence_length);
    const std::string window = history.substr(history.size() - length);
    const std::string expected = first_bytes(model(), window);
    CHECK(first_bytes(model(), "\11\11" + history) == expected);
    CHECK(first_bytes(model(), "\11" + window.substr(1)) != expected);
    CHECK(first_bytes(model(), "") == first_bytes(model(), "\n"));
    CHECK(first_bytes(model(), "") != first_bytes(model(), "\1"));
  }
  // What whole windows begin with, when there is less.
  CHECK(first_bytes(small_mlp(), "\1") == first_bytes(small_mlp(), "\n\n\1"));
  ModelDescription without_newline = small_mlp();
  without_newline.vocab_size = 9;
  CHECK(first_bytes(without_newline, "") == first_bytes(without_newline, std::string(3, '\0')));
}

TEST_CASE("passes of a transformer come in few lengths, and are logged as what they are",
          "[engine]") {
  ModelDescription model = tiny_transformer();
  model.sequence_length = 20;
  Training training = training_of(model, 3);
  training.steps = 1;
  training.generate = sampling_of("\1\2");
  std::set<Index> lengths;
  int passes = 0;
  bool elsewhere = false;
  run_ranks(2, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    if (communicator.rank() == 0) {
      recorder.observe([&](const Stamp& stamp, const Event& event) {
        const auto* alloc = std::get_if<AllocEvent>(&event);
        const auto* span = std::get_if<SpanEvent>(&event);
        const bool evaluates = span != nullptr && span->kind == "evaluate";
        elsewhere |= evaluates && stamp.phase != Phase::generate;
        if (stamp.phase != Phase::generate) return;
        if (alloc != nullptr && alloc->owner == "tokens") lengths.insert(alloc->bytes / 4);
        if (evaluates && span->module == "transformer") ++passes;
      });
    }
    train(communicator, recorder, training);
  });
  CHECK(lengths == std::set<Index>{16, 20});
  CHECK(passes == kCount);
  CHECK_FALSE(elsewhere);
}

TEST_CASE("a text begins as a shorter one does, and another seed writes another", "[engine]") {
  Sampling sampling = sampling_of("");
  const std::string text = text_of(tiny_transformer(), sampling);
  sampling.count = 12;
  CHECK(text_of(tiny_transformer(), sampling) == text.substr(0, 12));
  sampling.seed = 6;
  CHECK(text_of(tiny_transformer(), sampling) != text.substr(0, 12));
}

TEST_CASE("a logit that is not finite ends generation on all ranks, and nothing stays gathered",
          "[engine]") {
  for (const int stage : kStages) {
    const auto told =
        on_ranks(3, training_of(tiny_mlp(), stage),
                 [](Runtime& runtime, Engine& engine, const Training& training) {
                   Parameter& bias = engine.model().parameters().at("layers.5.bias");
                   {
                     GatheredParameters scope(runtime, engine.stage(), {&bias}, 0);
                     bias.data[4] = -std::numeric_limits<float>::infinity();
                   }
                   const auto error =
                       thrown_by([&] { generate(engine, training.vocab_size, sampling_of("")); });
                   if (!error || error->code() != Code::not_finite)
                     return std::string("no such error");
                   return rests(runtime, engine) ? error->what_happened() : "something is left";
                 });
    for (const std::string& message : told) {
      CHECK(message == "the logit of byte 4 at position 0 of the generated text is -inf");
    }
  }
}

TEST_CASE("a prompt that the model has no tokens for is refused before the first pass",
          "[engine]") {
  const auto error = thrown_by([] { text_of(tiny_mlp(), sampling_of("\xFF")); });
  REQUIRE(error);
  CHECK(contains(error->what(), "the model's vocabulary has 13 tokens"));
}

}  // namespace
}  // namespace zerolab::test
