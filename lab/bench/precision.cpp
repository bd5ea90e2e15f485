#include <fmt/format.h>

#include <algorithm>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/table.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/onednn.hpp"
#include "stages/model/linear_products.hpp"

namespace zerolab::bench {
namespace {

// What is hoped for only holds where the processor multiplies bf16.
std::optional<Target> at_least(double ratio) {
  if (!onednn::multiplies_bf16()) return std::nullopt;
  return Target{Target::Kind::at_least, ratio};
}

struct Tensors {
  Buffer a, b, c;
  Dtype dtype;

  Tensors(Ledger& ledger, Device& device, const Product& p, Dtype type) : dtype(type) {
    const auto random = [&](Index elements, std::uint64_t id) {
      Buffer buffer = ledger.allocate(elements * size_of(type), Category::activations, "matrix");
      device.random_normal(buffer.values(type), 0, elements, 1, id, 1.0F);
      return buffer;
    };
    a = random(p.m * p.k, 1);
    b = random(p.k * p.n, 2);
    c = random(p.m * p.n, 3);
  }
  void multiply(Device& device, const Product& p) const {
    device.matmul(p, a.values(dtype), b.values(dtype), nullptr, c.values(dtype));
  }
};

Figure product_figure(Index size, Dtype dtype, Effort effort) {
  const Product product = forward_product(size, size, size, false);
  Recorder recorder(0);
  Ledger ledger("device", recorder);
  CpuDevice device(ledger);
  const Tensors wide(ledger, device, product, Dtype::fp32), narrow(ledger, device, product, dtype);
  const auto seconds = interleave(effort.rounds(15), {{[&] { wide.multiply(device, product); }},
                                                      {[&] { narrow.multiply(device, product); }}});
  const double flops = 2e-9 * static_cast<double>(size * size * size);
  return ratio_figure(fmt::format("product {0} x {0} x {0}, fp32 / {1}", size, name_of(dtype)),
                      ratio_of(seconds[0], seconds[1]),
                      dtype == Dtype::bf16 ? at_least(1.6) : std::nullopt,
                      fmt::format("{:.0f} GFLOP/s", flops / spread_of(seconds[1]).median));
}

}  // namespace

std::vector<Figure> precision(Worlds& worlds, Effort effort) {
  std::vector<Figure> figures;
  if (worlds.rank == 0) {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
      for (const Index size : {256, 1024}) {
        figures.push_back(product_figure(effort.quick ? 64 : size, dtype, effort));
      }
    }
  }
  worlds.meet();
  const auto world = worlds.first.find(1);
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<Work> works;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    Trainer* trainer = nullptr;
    if (world != worlds.first.end()) {
      Training training = training_of(effort.model("gpt-mini"), 1, 0);
      training.settings.dtype = dtype;
      trainer = trainers.emplace_back(std::make_unique<Trainer>(*world->second, training)).get();
    }
    const auto step = [trainer] {
      if (trainer != nullptr) trainer->run(1);
    };
    works.push_back({step, [&worlds, step] {
                       worlds.meet();
                       step();  // the caches are this training's again
                     }});
  }
  const auto seconds = interleave(effort.rounds(9), works);
  worlds.meet();
  for (std::size_t i = 1; i < 3; ++i) {
    figures.push_back(
        ratio_figure(fmt::format("a step, 1 rank, fp32 / {}", i == 1 ? "bf16" : "fp16"),
                     ratio_of(seconds[0], seconds[i]), i == 1 ? at_least(1.3) : std::nullopt,
                     fmt::format("{} a step", human_seconds(spread_of(seconds[i]).median))));
  }
  return figures;
}

}  // namespace zerolab::bench
