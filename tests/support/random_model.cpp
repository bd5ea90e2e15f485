#include "tests/support/random_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "tests/support/described_training.hpp"

namespace zerolab::test {
namespace {

/// The distributions of <random> are not the same everywhere, its engines are.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : random_(number) {}
  Index between(Index least, Index most) {
    return least + static_cast<Index>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(Index n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

class Drawer {
 public:
  explicit Drawer(std::uint64_t number) : draw_(number) {}

  DescribedModel model() {
    DescribedModel model;
    model.vocabulary = draw_.between(5, 13);
    model.width = draw_.between(3, 7);
    model.tied = draw_.one_in(3);
    model.parts = parts(model.width, draw_.between(1, 6), 0);
    const Index width = model.parts.back().out;
    if (!model.tied) {
      model.parts.push_back(linear_part("head", width, model.vocabulary));
    } else if (width != model.width) {
      model.parts.push_back(linear_part("back", width, model.width));
    }
    for (const std::string& name : weights_) {
      if (draw_.one_in(6)) model.frozen.insert(name);
    }
    if (draw_.one_in(5)) model.frozen.insert("embedding.weight");
    if (model.frozen.size() > weights_.size() / 2) model.frozen.clear();  // something is to train
    return model;
  }

 private:
  std::vector<Part> parts(Index width, Index count, int depth) {
    std::vector<Part> result;
    for (Index i = 0; i < count; ++i) {
      result.push_back(part(width, depth));
      width = result.back().out;
    }
    return result;
  }

  Part part(Index width, int depth) {
    if (draw_.one_in(4)) {
      if (const Part* again = seen_with_input(width)) return *again;
    }
    Part fresh = fresh_part(width, depth);
    if (depth == 0) seen_.push_back(fresh);  // what stands in a group that is left out may be too
    return fresh;
  }

  Part fresh_part(Index width, int depth) {
    switch (draw_.between(0, depth < 2 ? 9 : 3)) {
      case 0:
        return norm(width);
      case 1:
        return gelu_part(name("gelu"), width);
      case 2: {
        if (const std::string* lender = norm_of_width(width)) {
          return scale_part(name("scale"), width, *lender);
        }
        return norm(width);
      }
      case 3:
        return linear(width, draw_.between(3, 9));
      case 4:
        return square_group(width, depth, When::odd_steps);
      case 5:
        return square_group(width, depth, When::never);
      case 6: {
        Part leaf = group_part(name("leaf"), {square_group(width, depth + 1, When::even_batch),
                                              square_group(width, depth + 1, When::odd_batch)});
        leaf.leaf = true;
        return leaf;
      }
      default: {
        Part group = square_group(width, depth, When::always);
        group.recomputed = draw_.one_in(2);
        return group;
      }
    }
  }

  /// A group with as many columns out as in, maybe around a residual.
  Part square_group(Index width, int depth, When when) {
    std::vector<Part> inside{norm(width)};
    for (Part& each : parts(width, draw_.between(0, 2), depth + 1)) {
      inside.push_back(std::move(each));
    }
    inside.push_back(linear(inside.back().out, width));
    Part group = group_part(name("group"), std::move(inside));
    group.when = when;
    group.residual = draw_.one_in(2);
    return group;
  }

  Part norm(Index width) {
    norms_.emplace_back(name("norm"), width);
    weights_.insert(weights_.end(),
                    {norms_.back().first + ".weight", norms_.back().first + ".bias"});
    return norm_part(norms_.back().first, width);
  }
  Part linear(Index in, Index out) {
    const std::string called = name("linear");
    weights_.insert(weights_.end(), {called + ".weight", called + ".bias"});
    return linear_part(called, in, out);
  }
  std::string name(const char* kind) { return fmt::format("{}{}", kind, ++names_); }

  const Part* seen_with_input(Index width) const {
    for (const Part& each : seen_) {
      if (each.in == width) return &each;
    }
    return nullptr;
  }
  const std::string* norm_of_width(Index width) const {
    for (const auto& [norm, its_width] : norms_) {
      if (its_width == width) return &norm;
    }
    return nullptr;
  }

  Draw draw_;
  int names_ = 0;
  std::vector<Part> seen_;
  std::vector<std::pair<std::string, Index>> norms_;
  std::vector<std::string> weights_;
};

}  // namespace

bool borrows_in_leaf(const DescribedModel& model) {
  const std::function<bool(const Part&, bool)> borrows = [&](const Part& part, bool in_leaf) {
    if (in_leaf && part.kind == Part::Kind::scale) return true;
    return std::any_of(part.parts.begin(), part.parts.end(),
                       [&](const Part& each) { return borrows(each, in_leaf || part.leaf); });
  };
  return std::any_of(model.parts.begin(), model.parts.end(),
                     [&](const Part& part) { return borrows(part, false); });
}

DescribedModel random_model(std::uint64_t number) { return Drawer(number).model(); }

void randomize_settings(std::uint64_t number, Training& training) {
  Draw draw(number + 1'000'000);
  Settings& settings = training.settings;
  settings.gradient_accumulation_steps = draw.between(1, 2);
  settings.micro_batch = draw.between(1, 3);
  settings.zero.reduce_bucket_size = draw.between(1, 100);
  settings.zero.overlap_comm = draw.one_in(2);
  settings.zero.contiguous_gradients = draw.one_in(2);
  settings.zero.reduce_scatter = !draw.one_in(4);
  settings.zero.prefetch_bucket_size = draw.between(0, 2) * draw.between(0, 60);
  settings.zero.param_persistence_threshold = draw.between(0, 1) * draw.between(0, 20);
  settings.zero.max_reuse_distance = draw.between(0, 1) * draw.between(0, 200);
  settings.zero.max_live_parameters = draw.between(0, 400);
  settings.zero.enable_sanity_checks = draw.one_in(2);
}

}  // namespace zerolab::test
