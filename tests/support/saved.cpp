#include "tests/support/saved.hpp"

#include <bit>
#include <cstring>

#include "stages/checkpoint/together.hpp"
#include "stages/engine/states.hpp"

namespace zerolab::test {

Training saving(Training training, const std::filesystem::path& folder,
                const std::set<Index>& after_steps) {
  training.after_step = [folder, after_steps](Runtime& runtime, Engine& engine) {
    if (after_steps.count(engine.steps_done()) == 0) return;
    save_checkpoint(runtime, engine, {.folder = folder});
  };
  return training;
}

Training resuming(Training training, const std::string& name) {
  training.resume = [name](Runtime& runtime, Engine& engine) {
    load_checkpoint(runtime, engine, Checkpoint::open(name));
  };
  return training;
}

namespace {

// What a rank has, as text for the others: begin, end and bits of each slice.
struct Piece {
  std::string state;
  Index begin = 0;
  std::vector<std::uint32_t> bits;
};

std::vector<std::uint32_t> bits_of(Runtime& runtime, ConstValues values, Index n) {
  std::vector<std::uint32_t> bits;
  for (const float value : floats_on_host(runtime, values, n)) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

std::string text_of(const std::vector<Piece>& pieces) {
  std::string text;
  const auto append = [&text](const void* data, std::size_t bytes) {
    text.append(static_cast<const char*>(data), bytes);
  };
  for (const Piece& piece : pieces) {
    const std::array<std::uint64_t, 3> head{
        piece.state.size(), static_cast<std::uint64_t>(piece.begin), piece.bits.size()};
    append(head.data(), sizeof head);
    append(piece.state.data(), piece.state.size());
    append(piece.bits.data(), piece.bits.size() * sizeof(std::uint32_t));
  }
  return text;
}

}  // namespace

States states_of(Runtime& runtime, Engine& engine) {
  std::vector<Piece> mine;
  for (const OwnedSlice& slice : engine.counted()) {
    const Index n = slice.range.size();
    const std::string& name = slice.parameter->name();
    const auto add = [&](const std::string& state, ConstValues values) {
      if (values == nullptr) return;
      mine.push_back({state + "/" + name, slice.range.begin, bits_of(runtime, values, n)});
    };
    add("weights", slice.weights);
    add("exact", slice.exact());
    add("moment1", slice.moments[0]);
    add("moment2", slice.moments[1]);
  }
  States states;
  for (const std::string& text : share_texts(runtime.comm, text_of(mine), "states")) {
    for (std::size_t at = 0; at < text.size();) {
      std::array<std::uint64_t, 3> head{};
      std::memcpy(head.data(), text.data() + at, sizeof head);
      at += sizeof head;
      std::vector<std::uint32_t>& all = states[text.substr(at, head[0])];
      at += head[0];
      all.resize(std::max<std::size_t>(all.size(), head[1] + head[2]));
      std::memcpy(all.data() + head[1], text.data() + at, head[2] * sizeof(std::uint32_t));
      at += head[2] * sizeof(std::uint32_t);
    }
  }
  return states;
}

States saved_states(int ranks, Training training, const std::filesystem::path& folder) {
  States states;
  training = saving(training, folder, {training.steps});
  training.after_step = [&states, save = training.after_step, steps = training.steps](
                            Runtime& runtime, Engine& engine) {
    save(runtime, engine);
    if (engine.steps_done() != steps) return;
    States now = states_of(runtime, engine);
    if (runtime.rank() == 0) states = std::move(now);
  };
  run(ranks, training);
  return states;
}

States states_behind(int ranks, Training training,
                     const std::function<void(Runtime&, Engine&)>& loading) {
  States states;
  training.resume = [&states, loading](Runtime& runtime, Engine& engine) {
    loading(runtime, engine);
    States now = states_of(runtime, engine);
    if (runtime.rank() == 0) states = std::move(now);
  };
  run(ranks, training);
  return states;
}

}  // namespace zerolab::test
