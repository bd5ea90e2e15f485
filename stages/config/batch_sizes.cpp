#include "stages/config/batch_sizes.hpp"

#include <fmt/format.h>

namespace zerolab {
namespace {

std::string given(std::string_view key, const std::optional<GivenSize>& size) {
  return size ? fmt::format("{} {} ({})", key, size->value, size->source)
              : fmt::format("{} (not given)", key);
}

// "train_batch_size 10 (ds.json) must be train_micro_batch_size_per_gpu ... x ... x 4 ranks".
std::string equation(const BatchQuestion& q) {
  return fmt::format("{} must be {} x {} x {} ranks ({})", given("train_batch_size", q.train),
                     given("train_micro_batch_size_per_gpu", q.micro),
                     given("gradient_accumulation_steps", q.accumulation), q.ranks, q.ranks_source);
}

BatchAnswer contradiction(const BatchQuestion& q, const std::string& arithmetic,
                          const std::string& way_out) {
  return {std::nullopt, fmt::format("{}, but {}; {}", equation(q), arithmetic, way_out)};
}

// The factor that is left when train is divided by the ranks and the other factor, if any.
BatchAnswer divide(const BatchQuestion& q, const std::optional<GivenSize>& other,
                   BatchSizes (*make)(Index train, Index other, Index quotient)) {
  const Index train = q.train->value;
  const Index factor = other ? other->value : 1;
  const Index share = factor * q.ranks;
  if (train % share == 0) return {make(train, factor, train / share), ""};
  const Index below = train / share * share;
  return contradiction(
      q,
      other ? fmt::format("{} / ({} x {}) is not whole", train, factor, q.ranks)
            : fmt::format("{} / {} is not whole", train, q.ranks),
      below > 0 ? fmt::format("take a train_batch_size of {} or {}", below, below + share)
                : fmt::format("take a train_batch_size of {}, or fewer ranks", share));
}

}  // namespace

BatchAnswer complete_batch_sizes(const BatchQuestion& q) {
  const Index ranks = q.ranks;
  if (q.train && q.micro && q.accumulation) {
    const BatchSizes sizes{q.train->value, q.micro->value, q.accumulation->value};
    const Index product = sizes.micro * sizes.accumulation * ranks;
    if (sizes.train == product) return {sizes, ""};
    return contradiction(
        q, fmt::format("{} x {} x {} = {}", sizes.micro, sizes.accumulation, ranks, product),
        fmt::format("set train_batch_size to {}, or leave one of the three out to have it derived",
                    product));
  }
  if (q.train && q.micro) {
    return divide(q, q.micro, [](Index train, Index micro, Index accumulation) {
      return BatchSizes{train, micro, accumulation};
    });
  }
  if (q.train) {
    return divide(q, q.accumulation, [](Index train, Index accumulation, Index micro) {
      return BatchSizes{train, micro, accumulation};
    });
  }
  const Index accumulation = q.accumulation ? q.accumulation->value : 1;
  if (q.micro) {
    return {BatchSizes{q.micro->value * accumulation * ranks, q.micro->value, accumulation}, ""};
  }
  if (q.preset_micro) {
    return {BatchSizes{*q.preset_micro * accumulation * ranks, *q.preset_micro, accumulation}, ""};
  }
  return {std::nullopt,
          "neither train_batch_size nor train_micro_batch_size_per_gpu is given; give one of them"};
}

}  // namespace zerolab
