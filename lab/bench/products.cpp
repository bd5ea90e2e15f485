#include <fmt/format.h>

#include <algorithm>

#include "lab/bench/bare_products.hpp"
#include "lab/bench/topics.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/model/description.hpp"
#include "stages/model/linear_products.hpp"

namespace zerolab::bench {
namespace {

constexpr Target kTarget{Target::Kind::at_least, 0.85};
constexpr double kSampleSeconds = 4e-3;  // a sample repeats a product until it takes about this

struct NamedProduct {
  std::string name;
  Product product;
};

struct LinearShape {
  std::string name;
  Index in, out;
};

std::vector<NamedProduct> products_of(const std::string& preset) {
  const ModelDescription model = describe_model(preset);
  const Index rows = run_defaults(model).micro_batch * model.sequence_length;
  const Index width = model.hidden_size;
  const std::vector<LinearShape> layers{{"qkv", width, 3 * width},
                                        {"projection", width, width},
                                        {"mlp.up", width, 4 * width},
                                        {"mlp.down", 4 * width, width},
                                        {"head", width, model.vocab_size}};
  std::vector<NamedProduct> products;
  for (const auto& [name, in, out] : layers) {
    const std::string layer = fmt::format("{} {}", preset, name);
    products.push_back({layer + " forward", forward_product(rows, in, out, name != "head")});
    products.push_back({layer + " input gradient", input_gradient_product(rows, in, out)});
    products.push_back({layer + " weight gradient", weight_gradient_product(rows, in, out)});
  }
  return products;
}

// Small numbers, none of them denormal: those would be slow.
Buffer random_matrix(Ledger& ledger, CpuDevice& device, Index elements, std::uint64_t id) {
  Buffer buffer = ledger.allocate(elements * size_of(Dtype::fp32), Category::activations, "matrix");
  device.random_normal(buffer.floats(), 0, elements, 1, id, 1.0F);
  return buffer;
}

Figure measure(const NamedProduct& named, Effort effort) {
  const Product& p = named.product;
  Recorder recorder(0);
  Ledger ledger("device", recorder);
  CpuDevice device(ledger);
  const Buffer a = random_matrix(ledger, device, p.m * p.k, 1);
  const Buffer b = random_matrix(ledger, device, p.k * p.n, 2);
  const Buffer bias = random_matrix(ledger, device, p.n, 3);
  const Buffer c = random_matrix(ledger, device, p.m * p.n, 4);
  const BareProducts bare(p, a.floats(), b.floats(), p.bias ? bias.floats() : nullptr, c.floats());

  const auto ours = [&] {
    device.matmul(p, a.floats(), b.floats(), p.bias ? bias.floats() : nullptr, c.floats());
  };
  ours();
  const double once = seconds_of(ours);
  const int repeats = effort.quick ? 1 : std::max(1, static_cast<int>(kSampleSeconds / once));
  const auto repeated = [repeats](const std::function<void()>& work) {
    return Work{[repeats, work] {
      for (int i = 0; i < repeats; ++i) work();
    }};
  };
  const auto seconds = interleave(
      effort.rounds(once > 0.1 ? 5 : 25),
      {repeated(ours), repeated([&] { bare.as_it_lies(); }), repeated([&] { bare.packed(); })});
  const double flops = 2e-9 * static_cast<double>(p.m * p.n * p.k) * repeats;
  return percent_figure(fmt::format("{} ({} x {} x {})", named.name, p.m, p.n, p.k),
                        ratio_of(seconds[1], seconds[0]), kTarget,
                        fmt::format("{:4.0f} GFLOP/s; {:.0f}% of packed beforehand",
                                    flops / spread_of(seconds[0]).median,
                                    100 * ratio_of(seconds[2], seconds[0]).median));
}

}  // namespace

std::vector<Figure> products(Effort effort) {
  std::vector<Figure> figures;
  for (const std::string& preset : effort.quick ? std::vector<std::string>{"gpt-nano"}
                                                : std::vector<std::string>{"gpt-mini", "gpt2"}) {
    for (const NamedProduct& named : products_of(preset)) figures.push_back(measure(named, effort));
  }
  return figures;
}

}  // namespace zerolab::bench
