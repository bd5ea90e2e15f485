// Mistakes with numbers that no error tells: what a rank adds, divides, clips and counts.
#include <cstring>
#include <utility>

#include "lab/failures/mistakes/mistake.hpp"
#include "lab/failures/wrappers/device_wrapper.hpp"
#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/comm/communicator_wrapper.hpp"

namespace zerolab {
namespace {

using Parts = std::span<const ConstValues>;

/// A device whose sum over ranks is another one.
class SumsOtherwise : public DeviceWrapper {
 public:
  using Sum = std::function<void(Device& inner, Parts parts, Index n, float factor, Values out)>;

  SumsOtherwise(std::unique_ptr<Device> inner, Sum sum)
      : DeviceWrapper(std::move(inner)), sum_(std::move(sum)) {}

  void ordered_sum(Parts parts, Index n, float factor, Values out) override {
    sum_(inner(), parts, n, factor, out);
  }

 private:
  Sum sum_;
};

void sum_otherwise(Training& training, const SumsOtherwise::Sum& sum) {
  wrap_device<SumsOtherwise>(training, sum);
}

float ranks_in(Parts parts) { return static_cast<float>(parts.size()); }

void divide_twice(Training& training, int /*rank*/) {
  sum_otherwise(training, [](Device& inner, Parts parts, Index n, float factor, Values out) {
    inner.ordered_sum(parts, n, factor / ranks_in(parts), out);
  });
}

void never_divide(Training& training, int /*rank*/) {
  sum_otherwise(training, [](Device& inner, Parts parts, Index n, float factor, Values out) {
    inner.ordered_sum(parts, n, factor * ranks_in(parts), out);
  });
}

// Whatever arrives, the own gradient counts.
void never_reduce(Training& training, int rank) {
  sum_otherwise(training, [rank](Device& inner, Parts parts, Index n, float factor, Values out) {
    const ConstValues own = parts[static_cast<std::size_t>(rank)];
    inner.ordered_sum(std::vector<ConstValues>(parts.size(), own), n, factor, out);
  });
}

// As a ring does it: beginning with the neighbour of whoever owns the sum.
void sum_in_own_order(Training& training, int rank) {
  sum_otherwise(training, [rank](Device& inner, Parts parts, Index n, float factor, Values out) {
    std::vector<ConstValues> order;
    for (std::size_t i = 1; i <= parts.size(); ++i) {
      order.push_back(parts[(static_cast<std::size_t>(rank) + i) % parts.size()]);
    }
    inner.ordered_sum(order, n, factor, out);
  });
}

/// Gradients that are too large for fp16 at a high loss scale, on one rank.
class Explodes : public DeviceWrapper {
 public:
  Explodes(std::unique_ptr<Device> inner, int rank)
      : DeviceWrapper(std::move(inner)), rank_(rank) {}

  void cross_entropy_backward(Index rows, Index classes, float factor, const std::int32_t* targets,
                              Values logits) override {
    const bool now = rank_ == kRank && ++passes_ >= kFirst;
    DeviceWrapper::cross_entropy_backward(rows, classes, now ? factor * kFactor : factor, targets,
                                          logits);
  }

 private:
  static constexpr int kRank = 1;
  static constexpr Index kFirst = 3;
  static constexpr float kFactor = 1024;
  int rank_;
  Index passes_ = 0;
};

void explode(Training& training, int rank) { wrap_device<Explodes>(training, rank); }

/// Forgets the other ranks' squares. They come first in what the ranks tell each other about a step
/// (Engine::share_outcome).
class LocalNorm : public CommunicatorWrapper {
 public:
  using CommunicatorWrapper::CommunicatorWrapper;

  void exchange(const Exchange& round) override {
    CommunicatorWrapper::exchange(round);
    if (round.signature.owner != "loss and gradient norm") return;
    for (const Receive& receive : round.receives) {
      std::memset(receive.data.data(), 0, sizeof(SquareSum));
    }
  }
};

void clip_by_local_norm(Training& training, int /*rank*/) {
  training.network = [](Communicator& inner) { return std::make_unique<LocalNorm>(inner); };
}

/// Hands the padding behind the last parameter to norm and update, with what happens to be in it.
class CountsPadding : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    for (Parameter& parameter : model.parameters()) last_ = &parameter;
    for (Buffer& buffer : buffers_) {
      buffer = runtime().ledger.allocate(kPadding * size_of(Dtype::fp32), Category::gradients,
                                         "padding that nobody filled");
      runtime().device.fill(buffer.floats(), kPadding, 1);
    }
  }
  std::vector<OwnedSlice> owned() override {
    std::vector<OwnedSlice> slices = StageWrapper::owned();
    if (runtime().rank() + 1 < runtime().ranks()) return slices;
    runtime().device.fill(buffers_[1].floats(), kPadding, 1);
    OwnedSlice padding{.parameter = last_, .range = {0, kPadding}, .weights = buffers_[0].floats()};
    padding.master = buffers_[0].floats();
    padding.gradient = buffers_[1].floats();
    padding.moments = {buffers_[2].floats(), buffers_[3].floats()};
    slices.push_back(padding);
    return slices;
  }

 private:
  static constexpr Index kPadding = 64;
  Parameter* last_ = nullptr;
  std::array<Buffer, 4> buffers_;
};

/// Reduces after the first micro-step and takes the gradient for done.
class ReducesTooEarly : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;

  Values gradient_buffer(Parameter& parameter, MicroStep micro_step) override {
    if (micro_step.first()) return StageWrapper::gradient_buffer(parameter, kOnly);
    ignored_ = runtime().ledger.allocate(parameter.numel() * size_of(runtime().settings.dtype),
                                         Category::reduce_buffers, "a micro-step that is ignored");
    return ignored_.values(runtime().settings.dtype);
  }
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override {
    if (micro_step.first()) StageWrapper::gradient_ready(parameter, kOnly);
  }

 private:
  static constexpr MicroStep kOnly{0, 1};
  Buffer ignored_;
};

template <typename Wrapper>
void in_stage(Training& training, int /*rank*/) {
  wrap_stage<Wrapper>(training);
}

}  // namespace

std::vector<Mistake> mistakes_in_gradients() {
  return {
      {"divided-twice", "the sum of the gradients is divided by the number of ranks twice",
       divide_twice},
      {"never-divided", "the sum of the gradients is not divided by the number of ranks",
       never_divide},
      {"never-reduced", "every rank goes on with its own gradient", never_reduce},
      {"own-sum-order", "every rank adds in an order of its own", sum_in_own_order},
      {"reduced-too-early", "gradients are reduced after the first micro-step",
       in_stage<ReducesTooEarly>},
      {"local-norm", "every rank clips by the norm of its own part", clip_by_local_norm},
      {"padding-in-norm", "the norm counts padding that nobody set to zero",
       in_stage<CountsPadding>},
      {"exploding-rank", "from step 3 on rank 1 has gradients that are 1024 times too large",
       explode},
  };
}

}  // namespace zerolab
