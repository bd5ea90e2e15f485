#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "lab/bench/topics.hpp"
#include "stages/comm/job.hpp"

namespace zerolab::bench {
namespace {

constexpr std::string_view kUsage =
    "zerolab_bench TOPIC [--quick]: one of the topics of lab/bench/run, as a table.\n"
    "  alone          products, memory, start-up\n"
    "  with ranks     stages, precision, overlap, recording, checkpoint, profile: on threads, or\n"
    "                 under mpirun on processes\n"
    "  under mpirun   collectives\n"
    "--quick runs the smallest thing that is run at all; its figures mean nothing.\n";

struct Topic {
  std::string_view name, title;
  std::vector<Figure> (*alone)(Effort) = nullptr;
  std::vector<Figure> (*ranks)(Worlds&, Effort) = nullptr;
  int threads = 0;  // ranks, where mpirun does not say; 0: only under mpirun
};

const Topic* find_topic(std::string_view name) {
  static constexpr std::array kTopics{
      Topic{"products", "CpuDevice's products: share of oneDNN's own speed", products},
      Topic{"stages", "time of a step, gpt-mini", nullptr, stages, 4},
      Topic{"precision", "speed of bf16 and fp16 in units of fp32's, gpt-mini", nullptr, precision,
            1},
      Topic{"collectives", "collectives: our time / MPI's", nullptr, collectives},
      Topic{"overlap", "stage 3 on an emulated link: share of its time that is hidden", nullptr,
            overlap, 2},
      Topic{"recording", "the event log: time added to a step", nullptr, recording, 2},
      Topic{"checkpoint", "checkpoints: share of the disk's speed, 8 million parameters", nullptr,
            checkpoint, 2},
      Topic{"profile", "shares of a step, gpt-mini, rank 0", nullptr, profile, 2},
      Topic{"memory", "resident memory of a process / peak of its ledger, gpt-mini, 1 rank",
            memory},
      Topic{"start-up", "zerolab train -n 2 --model mlp-small --steps 1, from start to end",
            start_up}};
  for (const Topic& topic : kTopics) {
    if (topic.name == name) return &topic;
  }
  return nullptr;
}

std::string title_of(const Topic& topic, const Effort& effort) {
  return fmt::format("{}{}", topic.title,
                     effort.quick ? " (quick: these figures mean nothing)" : "");
}

int refuse(std::string_view why) {
  std::cerr << "zerolab_bench: " << why << '\n' << kUsage;
  return Error(Code::usage, "", "").exit_status();
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return refuse("which topic?");
  if (arguments[0] == "--help") {
    std::cout << kUsage;
    return 0;
  }
  const Topic* topic = find_topic(arguments[0]);
  if (topic == nullptr) return refuse(fmt::format("there is no topic '{}'", arguments[0]));
  Effort effort;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] != "--quick") return refuse(fmt::format("what is '{}'?", arguments[i]));
    effort.quick = true;
  }

  if (topic->alone != nullptr) {
    if (launched_by_mpi()) return refuse(fmt::format("'{}' runs without mpirun", topic->name));
    std::cout << draw_figures(title_of(*topic, effort), topic->alone(effort));
    return 0;
  }
  const auto body = [&](Worlds& worlds) {
    const std::vector<Figure> figures = topic->ranks(worlds, effort);
    if (worlds.rank > 0) return;
    std::cout << draw_figures(fmt::format("{}; {}", title_of(*topic, effort), worlds.kind),
                              figures);
  };
  if (launched_by_mpi()) return run_on_mpi(body);
  if (topic->threads == 0) return refuse(fmt::format("'{}' needs mpirun", topic->name));
  return run_on_threads(topic->threads, body);
}

}  // namespace
}  // namespace zerolab::bench

int main(int argc, char** argv) {
  try {
    return zerolab::bench::run({argv + 1, argv + argc});
  } catch (const zerolab::Error& error) {
    std::cerr << "zerolab_bench: " << error.what() << '\n';
    return error.exit_status();
  }
}
